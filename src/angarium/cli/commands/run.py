"""`angarium run`: an app of handlers, from a module of the user's."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from angarium.cli.complaints import Refusal
from angarium.cli.profiles import choices
from angarium.client.addresses import SERVERS_VARIABLE
from angarium.client.handlers.app import App

if TYPE_CHECKING:
    from argparse import Namespace


def run(options: Namespace) -> int:
    """Run the app until a signal ends it."""
    logging.basicConfig(
        level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    # For an app that names no servers of its own: those a command would talk to.
    os.environ[SERVERS_VARIABLE] = ",".join(map(str, choices(options).servers))
    found_app(options.app).run()
    return 0


def found_app(written: str) -> App:
    """Return the app that "module:name" stands for; `Refusal` says what is wrong with it."""
    module_name, _, name = written.partition(":")
    if not module_name or not name:
        raise Refusal(f"{written!r} names no app; write MODULE:APP, for example workers:app")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # something that the module itself wants is missing
        raise Refusal(f"there is no module {module_name!r} in {folder} or installed") from None
    app = getattr(module, name, None)
    if not isinstance(app, App):
        raise Refusal(f"{name!r} in {module_name} is no angarium.App")
    return app
