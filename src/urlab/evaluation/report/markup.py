"""HTML that is escaped unless it was made here."""

from html import escape


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Content = Markup | str | int


def tag(name: str, *content: Content, **attributes: str | int | bool | None) -> Markup:
    """An element. ``cls`` is the class, other underscores become hyphens; None and False leave an attribute out."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    return Markup(f"<{name}{written}>{join(*content)}</{name}>")


def join(*content: Content) -> Markup:
    """One after the other."""
    return Markup("".join(one if isinstance(one, Markup) else escape(str(one)) for one in content))


def _attribute(key: str, value: str | int | bool | None) -> str:
    name = "class" if key == "cls" else key.replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
