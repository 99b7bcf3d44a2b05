"""The colours of a page, light and dark, by name: the style sheet has them as variables, the pictures refer to them."""

from __future__ import annotations

from typing import Final

LIGHT: Final = {
    "paper": "#ffffff",
    "raised": "#f5f7f9",
    "line": "#d5dae1",
    "muted": "#545e6a",
    "ink": "#1a1f26",
    "good": "#1a7437",
    "warn": "#8f5400",
    "bad": "#b8222b",
    "info": "#0b5cad",
    "good-raised": "#e9f6ec",
    "warn-raised": "#fdf3df",
    "bad-raised": "#fdecec",
    "info-raised": "#e8f1fb",
    "s1": "#2f6fbb",
    "s2": "#c2570c",
    "s3": "#20815a",
    "s4": "#8a55b5",
    "s5": "#8f7214",
    "s6": "#65707d",
}
DARK: Final = {
    "paper": "#13161b",
    "raised": "#1c2027",
    "line": "#3a414c",
    "muted": "#a6b0bc",
    "ink": "#e8ebef",
    "good": "#5cc878",
    "warn": "#e3a83f",
    "bad": "#ff8680",
    "info": "#74b4ff",
    "good-raised": "#14291b",
    "warn-raised": "#2e2412",
    "bad-raised": "#341a1b",
    "info-raised": "#16263a",
    "s1": "#6ea8ef",
    "s2": "#f0935a",
    "s3": "#5cc493",
    "s4": "#c19ae6",
    "s5": "#d6b95f",
    "s6": "#98a3b0",
}
SERIES: Final = ("s1", "s2", "s3", "s4", "s5", "s6")


def css_variables(colours: dict[str, str]) -> str:
    """The declarations of these colours.

    >>> css_variables({"ink": "#000000"})
    '--ink: #000000;'
    """
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2, from 0 to 1, of `#rrggbb`.

    >>> luminance("#000000"), luminance("#ffffff")
    (0.0, 1.0)
    """
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return round(0.2126 * red + 0.7152 * green + 0.0722 * blue, 6)
