"""Every word that a person sees, one catalogue a language: `en.py` is the first, another language is one more file."""

from __future__ import annotations

import importlib
from types import ModuleType


def catalogue(language: str = "en") -> ModuleType:
    """The words of a language: LABELS, SAY, CUTS, BOUNDS, NOTICES and UNKNOWN_NOTICE.

    Raises:
        ValueError: there is no catalogue of that name.
    """
    try:
        return importlib.import_module(f"tensormagic.show.words.{language}")
    except ModuleNotFoundError:
        raise ValueError(
            f"there is no catalogue of words for {language!r}: add tensormagic/show/words/{language}.py"
        ) from None
