"""The secure engine: CrypTen's shared tensors over our own transport, dealer and randomness.

Nothing else in the toolkit imports crypten.
"""
