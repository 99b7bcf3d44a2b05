"""`mqindex doctor`."""

from __future__ import annotations

from mqindex.cli.doctor import cluster, installed, machine
from mqindex.cli.doctor.line import lines_of
from mqindex.cli.options import json_option, subcommand
from mqindex.cli.printing.output import print_json, print_line, print_paragraph

LOOKS = {
    "Python": installed.python,
    "kernels": installed.of_kernels,
    "extras": installed.extras,
    "Spark": cluster.spark,
    "locale": machine.locale,
    "limits": machine.limits,
    "file systems": machine.places,
}


@subcommand("doctor", "mqindex doctor", "mqindex doctor --json")
@json_option
def command(*, as_json: bool) -> int:
    """Say what of mqindex works on this machine, what will not, and what to do.

    Python and its packages, the kernels' choice for this processor, Java and what else Spark needs, locale, limits, and
    the file systems of the current and the temporary directory, on which a probe file is made and removed. Each line is
    `works`, `limited`, or `absent`: an extra that is not installed. Exit code 0: nothing is limited; 1: something is.
    """
    limited = False
    for about, look in LOOKS.items():
        for line in lines_of(about, look):
            limited = limited or line.state == "limited"
            if as_json:
                print_json("doctor", line._asdict())
                continue
            print_line(f"{line.state:<8} {line.about:<18} {line.found}")
            if line.advice:
                print_paragraph(f"-> {line.advice}", indent=9)
    return 1 if limited else 0
