"""The commands on n-gram models: those of the lab."""

from __future__ import annotations

from cyclopts import App

lm = App(name="lm")
lm.command("lab.lm.command:train_lm", name="train", help="Count the n-grams of a corpus into a model.")
lm.command("lab.lm.command:calibrate_lm", name="calibrate", help="Choose the limit that labelled pages want.")
