"""Exact noise, sensitivities, guarantees and accounting. Knows neither torch nor crypten."""
