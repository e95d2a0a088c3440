"""What %load_ext adds to IPython, and takes away again."""

from __future__ import annotations

from typing import Any

from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.display import display

from .. import doctor
from ..errors import OptionError, TileError
from ..views.failure import failure_document
from ..views.result import Result, Shown
from . import cell as cells
from . import complete, configure, tracebacks
from .lines import HELP, tile
from .options import CellOptions, help_text, parse
from .registry import Registry
from .source import Cell, as_typed, cell_of, in_editor, magic_place, with_a_body, word_place

KEPT = "_tileworkbench"  # the shell's attribute that holds what was added


@magics_class
class TileMagics(Magics):  # type: ignore[misc]
    """The magics; all of them only parse, call and hand back an object that shows itself."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self.registry = Registry()

    @cell_magic  # type: ignore[untyped-decorator]
    def tilekernel(self, line: str, body: str) -> Result | Shown | None:
        found = cell_of(self.shell, line, body)
        try:
            options = parsed(found, line)
            if options.help:
                say(help_text())
                return None
            return cells.run(found, options, self.shell.user_ns, self.registry)
        except cells.Wrong as error:
            display(error.result)
            raise tracebacks.trimmed(error) from None
        except TileError as error:
            raise self.told(error.at(magic_place(found)), found) from None

    @line_magic("tile")  # type: ignore[untyped-decorator]
    def tile_line(self, line: str) -> Result | Shown | None:
        try:
            found = tile(line, self.registry)
        except TileError as error:
            raise tracebacks.trimmed(error) from None
        if isinstance(found, str):
            say(found)
            return None
        return found

    @line_magic  # type: ignore[untyped-decorator]
    def tile_doctor(self, line: str) -> None:
        """What this machine has for tileworkbench, and the fix for what it lacks."""
        say(doctor.text(doctor.examine()))

    def told(self, error: TileError, cell: Cell) -> TileError:
        """Shows the record that an editor reads before the error ends the run."""
        display(Shown(in_editor(cell, failure_document(error, cell.name, cell.source))))
        return tracebacks.trimmed(error)  # type: ignore[no-any-return]


def parsed(cell: Cell, line: str) -> CellOptions:
    """The options; a mistake among them is shown in the line as it was typed."""
    try:
        return parse(line)
    except OptionError as error:
        as_typed(cell)
        raise error.at(word_place(cell, getattr(error, "word", ""))) from None


def say(text: str) -> None:
    display({"text/plain": text}, raw=True)


TileMagics.tilekernel.__doc__ = help_text()
TileMagics.tile_line.__doc__ = HELP


def load(shell: Any) -> None:
    """Adds magics, completion, tracebacks and settings."""
    if hasattr(shell, KEPT):
        return
    magics = TileMagics(shell)
    shell.register_magics(magics)
    added = {"magics": magics, "matcher": complete.matcher(), "config": configure.configurable(shell)}
    if getattr(shell, "Completer", None) is not None:
        shell.Completer.custom_matchers.append(added["matcher"])
    shell.configurables.append(added["config"])
    shell.input_transformers_cleanup.append(with_a_body)
    tracebacks.install()
    setattr(shell, KEPT, added)


def unload(shell: Any) -> None:
    """Takes back all that `load` added."""
    added = getattr(shell, KEPT, None)
    if added is None:
        return
    if getattr(shell, "Completer", None) is not None and added["matcher"] in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.remove(added["matcher"])
    shell.configurables.remove(added["config"])
    shell.input_transformers_cleanup.remove(with_a_body)
    for kind, name in (("cell", "tilekernel"), ("line", "tile"), ("line", "tile_doctor")):
        shell.magics_manager.magics[kind].pop(name, None)
    tracebacks.remove()
    delattr(shell, KEPT)
