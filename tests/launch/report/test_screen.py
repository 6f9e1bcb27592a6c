"""The report in a browser: on a phone's width, with a column whose name is a script, on paper."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html import escape
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from launch.report.command import report
from tests.launch.report.support import costs, guarantee, write_results

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = ["--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars", "--disable-sync"]
OPTIONS += ["--disable-background-networking", "--disable-component-update"]
OPTIONS += ["--no-sandbox"] if os.geteuid() == 0 else []  # as root, Chromium has none
PHONE = 360  # CSS pixels across
POLICY = re.compile('<meta http-equiv="Content-Security-Policy"[^>]*>')
# widths of page and table, and the smallest letters of drawings, as the browser lays them out
MEASURE = """
const frame = document.querySelector("iframe");
frame.onload = () => {
  const page = frame.contentDocument, view = frame.contentWindow;
  const letters = [...page.querySelectorAll("svg text")].map(text => {
    const svg = text.ownerSVGElement;
    return parseFloat(view.getComputedStyle(text).fontSize) * svg.clientWidth / svg.viewBox.baseVal.width;
  });
  const measured = {
    width: page.documentElement.scrollWidth,
    letters: Math.min(...letters),
    drawings: page.querySelectorAll("svg text").length,
    title: page.title,
    background: view.getComputedStyle(page.querySelector(".warning")).backgroundColor,
  };
  document.body.setAttribute("data-measured", JSON.stringify(measured));
};
"""

pytestmark = [
    pytest.mark.mpc,
    pytest.mark.skipif(BROWSER is None, reason="no chromium here: apt-get install chromium"),
]


def browse(folder: Path, html: str, *options: str) -> str:
    path = folder / "page.html"
    path.write_text(html, encoding="utf-8")
    command = [str(BROWSER), *OPTIONS, f"--user-data-dir={folder}/profile", *options, path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def phone(html: str, script: str = "") -> str:
    """A page that shows `html` as a phone would: the browser's own windows are wider."""
    frame = f'<iframe style="width:{PHONE}px;height:2400px;border:0" srcdoc="{escape(html)}"></iframe>'
    return f"<!DOCTYPE html><body style=margin:0>{frame}<script>{script}</script></body>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report with long names, a script for a column, and a warning."""
    model = {"indefinite": 1, "coefficients": {'<script>document.title="taken"</script>': 1.5, "x" * 64: -2.0}}
    names = ("north-eastern-hospital", "b" * 40, "cid")
    promise = guarantee(parties=names, per_party=None)
    folder = tmp_path_factory.mktemp("run")
    reports = costs((*names, "server", "dealer"))
    return report(write_results(folder / "run", model=model, promise=promise, reports=reports)).read_text()


def test_it_fits_a_phone_and_its_letters_can_be_read(page: str, tmp_path: Path) -> None:
    """Without the page's policy, so that only its text stands between a column's name and the browser."""
    shown = browse(tmp_path, phone(POLICY.sub("", page), MEASURE), "--virtual-time-budget=5000", "--dump-dom")
    found = re.search('data-measured="([^"]*)"', shown)
    assert found, shown[-500:]
    measured = json.loads(found[1].replace("&quot;", '"'))
    assert measured["width"] <= PHONE
    assert measured["drawings"] > 20 and measured["letters"] >= 10
    assert measured["title"] == "test: report"  # and not "taken"
    assert measured["background"] == "rgb(255, 241, 234)"  # the style has come through


def test_the_policy_stops_scripts_even_if_one_gets_in(page: str, tmp_path: Path) -> None:
    script = "<script>document.title = 'taken'</script>"
    broken = page.replace("</main>", f"{script}</main>")
    assert "<title>test: report</title>" in browse(tmp_path, broken, "--virtual-time-budget=1000", "--dump-dom")
    open_to_all = POLICY.sub("", broken)
    assert "<title>taken</title>" in browse(tmp_path, open_to_all, "--virtual-time-budget=1000", "--dump-dom")


def test_a_screenshot_shows_something(page: str, tmp_path: Path) -> None:
    picture = tmp_path / "report.png"
    browse(tmp_path, phone(page), f"--screenshot={picture}", "--window-size=500,2400")
    pixels = imread(picture)[:, :PHONE, :3]
    assert pixels.shape == (2400, PHONE, 3)
    dark = (pixels < 0.5).all(axis=2)
    assert 0.01 < dark.mean() < 0.3  # letters on paper
    assert dark.any(axis=1)[:1200].mean() > 0.3  # all the way down
    assert not dark[:, -8:].any()  # nothing is cut at the right edge
    assert len(np.unique((pixels.reshape(-1, 3) * 255).astype(int), axis=0)) > 50


def test_it_prints(page: str, tmp_path: Path) -> None:
    paper = tmp_path / "report.pdf"
    browse(tmp_path, page, f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    data = paper.read_bytes()
    assert data.startswith(b"%PDF") and 2 <= len(re.findall(rb"/Type ?/Page\b", data)) <= 12
