"""Names that want to be markup remain the text that they are: in the panel, films, notebooks and pictures."""

from __future__ import annotations

import ast
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import featherjet as fj
from browser import opened
from featherjet.display import Markup, markup, table
from featherjet.model.builder import ModelBuilder
from featherjet.view.browser import chromium
from featherjet.view.curves import motion_panels
from featherjet.view.page import titled, with_curves

ROOT = Path(fj.__file__).parent
NAMES = (
    '<iframe srcdoc="<script>parent.hacked=1</script>"></iframe>',
    "<img src=x onerror=window.hacked=1>",
    '"><svg onload=window.hacked=1>',
    "' onmouseover='window.hacked=1",
    "[here](javascript:window.hacked=1)",
    "`<b>`</title></style></script></body><script>window.hacked=1</script>",
    "**bold** {0} {x} %s &lt;b&gt; $\\frac$ *_x_*",
)


def robot(name: str) -> fj.Robot:
    """An arm whose robot, joints, bodies and frames all have the name."""
    builder = ModelBuilder(name)
    for k in range(2):
        joint = builder.add_joint(f"{name}{k}", "revolute", f"{name}{k - 1}" if k else None, axis=(0, 1, 0))
        builder.add_body(joint, 1.0, (0.1, 0, 0.2), 0.01 * np.eye(3), name=f"body {name}{k}")
    builder.add_frame(f"frame {name}", joint)
    return fj.Robot(builder.build(), backend="numpy")


class Tags(HTMLParser):
    """All tags and attributes of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def motions():
    found = {}
    for name in ("plain", *NAMES):
        arm = robot(name)
        found[name] = arm.simulate(np.array([0.3, 0.2]), np.zeros(2), dt=0.01, duration=0.05)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_html_has_the_same_tags_whatever_names_are(name, motions):
    def pages(motion):
        arm = robot(motion.robot)
        from featherjet.simulation.playback import Playback

        playback = Playback(motion)
        player = titled("<html><title>Viser</title><body></body></html>", motion.robot)
        yield with_curves(player, f"{motion.robot}, caption", *motion_panels(playback))
        yield arm._repr_html_()
        yield table((motion.robot, "b"), [(motion.robot, arm.joint_names[0])], motion.robot)

    for page, plain in zip(pages(motions[name]), pages(motions["plain"]), strict=True):
        found, known = Tags(page), Tags(plain)
        assert found.tags == known.tags
        assert name in found.text


@pytest.mark.parametrize("name", NAMES)
def test_matplotlib_shows_names_as_they_are(name, motions, tmp_path):
    pytest.importorskip("matplotlib")
    from featherjet.view.matrices import draw

    arm, motion = robot(name), motions[name]
    for what in ("curves", "torques", "phase"):
        motion.plot(tmp_path / f"{what}.png", what=what)
    figure = draw(arm.model, {"M": np.ones((1, 2, 2))})
    figure.savefig(tmp_path / "m.svg")
    assert "<image" not in re.sub(r"<image [^>]*data:image/png[^>]*>", "", (tmp_path / "m.svg").read_text())


def viser_messages(viewer):
    return list(viewer.server._websock_server.get_message_buffer().message_from_id.values())


@pytest.mark.parametrize("name", NAMES)
def test_the_panel_is_no_markup(name):
    pytest.importorskip("viser")
    arm = robot(name)
    viewer = fj.show(arm, port=18120)
    try:
        sent = viser_messages(viewer)
        rendered = [m.props for m in sent if type(m).__name__ in ("GuiMarkdownMessage", "GuiHtmlMessage")]
        (title,) = [props.content for props in rendered]
        assert [tag for tag, _ in Tags(title).tags] == ["div", "b"]
        assert name in Tags(title).text
        for props in [m.props for m in sent if hasattr(m, "props")]:  # icons are the only other HTML of viser's
            assert not getattr(props, "_icon_html", None)
        assert Tags(viewer._repr_html_()).tags == [("iframe", ("src", "width", "height", "style"))]
        film = viewer.as_html()
        head = Tags(film.partition("<script>window.__VISER_EMBED_DATA__")[0].partition("<title>")[2])
        assert name in head.text
        assert not {tag for tag, _ in head.tags} & {"iframe", "img", "svg"}
    finally:
        viewer.stop()


@pytest.mark.skipif(chromium() is None, reason="no chromium here: apt-get install chromium")
def test_a_browser_runs_nothing_of_names(tmp_path):
    everything = " ".join(NAMES)
    arm = robot(everything)
    motion = arm.simulate(np.array([0.3, 0.2]), np.zeros(2), dt=0.01, duration=0.3)
    for thing in (arm, motion):
        viewer = fj.show(thing, port=18121, play=False, meshes=None)
        try:
            for k, actor in enumerate(viewer.stage.actors):
                actor.show_layer("names", True)
                assert k == 0
            with opened(viewer.url) as page:
                page.wait("document.querySelector('canvas') !== null")
                page.wait("document.body.innerText.includes('onerror=window.hacked')")
                assert page.script("window.hacked") is None
                assert page.script("document.querySelectorAll('iframe, img[onerror], svg[onload]').length") == 0
            path = viewer.record(tmp_path / "film.html", fps=10)
        finally:
            viewer.stop()
        with opened(path.as_uri()) as page:
            page.wait("document.querySelector('canvas') !== null")
            assert page.script("window.hacked") is None
            assert page.script("document.querySelectorAll('iframe, img[onerror], svg[onload]').length") == 0


def test_html_is_made_in_one_place():
    """Tags appear in templates of `markup` alone, and viser gets HTML from `markup` alone, Markdown never."""
    tag = re.compile(r"</?[a-z][a-z0-9]*[ >]|\]\(")
    wrong = []
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                words = [x.value for x in node.values if isinstance(x, ast.Constant)]
                filled = any(isinstance(x, ast.FormattedValue) for x in node.values)
                if filled and any(tag.search(x) for x in words) and HTML.search("".join(words)):
                    wrong.append(f"{path}:{node.lineno}")
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr == "add_markdown":
                    wrong.append(f"{path}:{node.lineno}")
                if node.func.attr == "add_html" and "markup(" not in ast.unparse(node.args[0]):
                    wrong.append(f"{path}:{node.lineno}")
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "markup":
                assert isinstance(node.args[0], ast.Constant | ast.Name), f"{path}:{node.lineno}: a template is fixed"
    assert not wrong


HTML = re.compile(r"</(?:a|b|p|t[drh]|div|span|iframe|figure|figcaption|title|h1|svg|table|caption|text|style|script)>")


def test_markup_escapes_all_but_markup():
    inner = markup("<b>{}</b>", "<&\"'\x1b")
    assert inner == "<b>&lt;&amp;&quot;&#x27;\\x1b</b>"
    assert markup("<p>{}</p>", inner) == f"<p>{inner}</p>"
    assert isinstance(inner, Markup)
    assert not isinstance(inner.lower(), Markup)  # what is done to it may break it, so it would be escaped again
