"""`angarium completion bash | zsh | fish`"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_MORE = """\
    bash    eval "$(angarium completion bash)"                      in ~/.bashrc
    zsh     eval "$(angarium completion zsh)"                       in ~/.zshrc, after compinit
    fish    angarium completion fish > ~/.config/fish/completions/angarium.fish"""


def add(words: Words) -> None:
    """Add the word."""
    parser = words.add(
        "completion",
        "print a script that completes words in a shell",
        run="completion:run",
        more=_MORE,
        connects=False,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
