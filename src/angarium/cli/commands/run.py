"""`angarium run`: an app of handlers, from a module of the user's."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import traceback
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import angarium
from angarium.cli.complaints import Refusal
from angarium.cli.profiles import choices
from angarium.client.addresses import SERVERS_VARIABLE
from angarium.client.handlers.app import App
from angarium.errors import AngariumError

if TYPE_CHECKING:
    from argparse import Namespace

_PACKAGE: Final = str(Path(angarium.__file__).parent)


def run(options: Namespace) -> int:
    """Run the app until a signal ends it."""
    logging.basicConfig(
        level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    # For an app that names no servers of its own: those a command would talk to.
    os.environ[SERVERS_VARIABLE] = ",".join(map(str, choices(options).servers))
    app = found_app(options.app)
    try:
        app.run()
    except AngariumError:
        raise
    except Exception as error:  # of a function of the user's, most likely: one for the start
        raise Refusal(f"{options.app} ended with an error:\n{_told(error)}") from None
    return 0


def found_app(written: str) -> App:
    """Return the app that "module:name" stands for; `Refusal` says what is wrong with it."""
    module_name, _, name = written.partition(":")
    if not module_name or not name:
        raise Refusal(
            f"{written!r} does not name an app; write MODULE:APP, for example workers:app"
        )
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            # Something that the module itself wants is missing.
            raise Refusal(f"{module_name} cannot be imported:\n{_told(error)}") from None
        hint = f"; write {module_name[:-3]}:{name}" if module_name.endswith(".py") else ""
        raise Refusal(
            f"there is no module {module_name!r} in {folder} or installed{hint}"
        ) from None
    except Exception as error:
        raise Refusal(f"{module_name} cannot be imported:\n{_told(error)}") from None
    app = getattr(module, name, None)
    if not isinstance(app, App):
        apps = [known for known, value in vars(module).items() if isinstance(value, App)]
        hint = f"; did you mean {module_name}:{apps[0]}?" if apps else ""
        raise Refusal(f"{name!r} in {module_name} is not an angarium.App{hint}")
    return app


def _told(error: Exception) -> str:
    """Return an error of the user's program as Python tells it, without our part of the way."""
    trace = error.__traceback__
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    limit = None
    if isinstance(error, AngariumError):
        # Refused by us: the way from the user's line to where we found out is ours as well.
        files = (frame.f_code.co_filename for frame, _ in traceback.walk_tb(trace))
        limit = sum(1 for _ in takewhile(lambda file: not file.startswith(_PACKAGE), files))
    return "".join(traceback.format_exception(type(error), error, trace, limit=limit)).rstrip()


def _is_ours(filename: str) -> bool:
    return filename in (__file__, importlib.__file__) or filename.startswith("<frozen importlib")
