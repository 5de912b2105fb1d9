"""Which encoding bytes have that are not UTF-8: for the error that says how to convert them."""

from __future__ import annotations

import codecs


def encoding_of(raw: bytes, start: int = 0) -> str:
    """The probable encoding, as iconv names it, of the bytes of a file from `start` on, which are not UTF-8 text."""
    if start == 0 and raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16"
    zeros = raw.count(0)
    if zeros * 4 < len(raw):  # in UTF-16, every second byte of most European texts is 0
        return "CP1252"  # of Windows; equal to Latin-1 for all characters that both have
    return "UTF-16BE" if 2 * raw[start % 2 :: 2].count(0) > zeros else "UTF-16LE"
