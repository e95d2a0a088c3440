"""TileLang's import paths on this package: kernels and scripts written for TileLang run unchanged."""

from .alias import Alias, alias_tilelang, remove_alias
from .script import run_script

__all__ = ["Alias", "alias_tilelang", "remove_alias", "run_script"]
