"""How a report looks: colours of text and drawings, one narrow column, print."""

from __future__ import annotations

TEXT, MUTED, PAPER = "#1b1b1b", "#525252", "#ffffff"
LINK = "#0b4f9e"
WARNING, WARNING_PAPER = "#7a1f00", "#fff1ea"
GOOD, BAD = "#1d5e2f", "#9c1c1c"
RULE = "#c9c9c9"  # separates, says nothing by itself
# of bars and lines; each stands out on paper by 3 : 1 at least, which WCAG 2.1 (1.4.11) asks of graphics
SERIES = ("#1f5a8c", "#b0481a", "#2f7a4f", "#7b4fa3", "#866300", "#a33a6b", "#38777d", "#5c5c5c")
SHADES = ("#6089b4", "#0a2440")  # of few and of many

CSS = f"""
:root {{ color-scheme: light; }}
* {{ box-sizing: border-box; }}
body {{ margin: 0; background: {PAPER}; color: {TEXT}; font: 1rem/1.5 system-ui, sans-serif; }}
main {{ max-width: 50rem; margin: 0 auto; padding: 1rem; }}
h1 {{ font-size: 1.6rem; line-height: 1.2; margin: .5rem 0; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.25rem; margin: 2.2rem 0 .6rem; padding-top: .6rem; border-top: 1px solid {RULE}; }}
h3 {{ font-size: 1.05rem; margin: 1.2rem 0 .3rem; }}
p, li, dd {{ overflow-wrap: anywhere; }}
a {{ color: {LINK}; }}
.lead {{ font-size: 1.1rem; }}
.warning {{ background: {WARNING_PAPER}; color: {WARNING}; border-left: .3rem solid {WARNING}; padding: .6rem .8rem; }}
.yes {{ color: {GOOD}; }}
.no {{ color: {BAD}; }}
figure {{ margin: 1rem 0; }}
figure svg {{ display: block; width: 100%; max-width: 34rem; height: auto; }}
figcaption {{ color: {MUTED}; font-size: .9rem; }}
.scroll {{ overflow-x: auto; margin: 1rem 0; }}
table {{ border-collapse: collapse; width: 100%; font-size: .9rem; }}
caption {{ text-align: left; color: {MUTED}; padding-bottom: .3rem; }}
th, td {{ padding: .3rem .7rem .3rem 0; border-bottom: 1px solid {RULE}; vertical-align: top; text-align: left; }}
thead th {{ vertical-align: bottom; }}
th.words, td.words {{ min-width: 5.5rem; }}
td.number, th.number {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
tbody th {{ font-weight: 600; }}
dl > div {{ display: flex; flex-wrap: wrap; gap: 0 .8rem; }}
dt {{ color: {MUTED}; min-width: 14rem; }}
.aside {{ color: {MUTED}; }}
dd {{ margin: 0; }}
ul, ol {{ padding-left: 1.3rem; }}
@media print {{
  body {{ font-size: 10pt; }}
  main {{ max-width: none; padding: 0; }}
  .scroll {{ overflow: visible; }}
  figure, tr, li {{ break-inside: avoid; }}
  h2, h3 {{ break-after: avoid; }}
  a {{ color: {TEXT}; text-decoration: none; }}
  .warning {{ background: none; border: 1px solid {TEXT}; color: {TEXT}; }}
}}
"""
