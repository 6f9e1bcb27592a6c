"""Split learning with private labels (paper 4, TPSL)."""
