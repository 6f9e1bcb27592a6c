"""Pairing-based encryption of the columns, for parties that trust no dealer: an untrusted server multiplies
ciphertexts, two parties (or t of K) decrypt sums that carry their noise already (Boneh, Goh and Nissim 2005; Yuan and
Yu 2014; the prime-order scheme of Attrapadung et al. 2018).
"""
