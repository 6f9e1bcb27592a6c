"""The keystream against published AES-256 output, chunking, and what happens over a fork."""

import os

import numpy as np
import pytest
from scipy import stats

from mechanisms.randomness import SecureRandom, Stream


def test_stream_is_aes_256_in_counter_mode() -> None:
    """NIST AESAVS, all-zero key and block: the first block of the keystream."""
    assert Stream(bytes(32)).words(2).tobytes().hex() == "dc95c078a2408989ad48a21492842087"


def test_drawing_in_parts_gives_the_same_words() -> None:
    whole = Stream(bytes(range(32))).words(20_000)
    stream = Stream(bytes(range(32)))
    parts = np.concatenate([stream.words(count) for count in (0, 1, 7, 8192, 3, 11_797)])
    assert np.array_equal(whole, parts)


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_refuses_other_keys(size: int) -> None:
    with pytest.raises(ValueError, match=f"key has {size} bytes, needs 32"):
        Stream(bytes(size))


def test_words_are_uniform() -> None:
    words = SecureRandom().words(50_000)
    bits = np.unpackbits(words.view(np.uint8))
    assert stats.binomtest(int(bits.sum()), bits.size).pvalue > 1e-9
    assert stats.chisquare(np.bincount((words >> np.uint64(56)).astype(int), minlength=256)).pvalue > 1e-9


def test_two_sources_never_agree() -> None:
    assert not np.array_equal(SecureRandom().words(4), SecureRandom().words(4))


def child_words(random: SecureRandom | Stream) -> bytes:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, random.words(4).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    words = os.read(reading, 32)
    os.close(reading)
    os.close(writing)
    return words


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_draws_new_words() -> None:
    random = SecureRandom()
    random.words(1)
    assert child_words(random) != random.words(4).tobytes()
    plain = Stream(bytes(32))  # the mutant: a keystream without the check repeats itself
    assert child_words(plain) == plain.words(4).tobytes()
