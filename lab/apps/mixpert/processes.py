"""Times the correlation in one to several processes that share a device (MixPert, section 4.6, Fig. 12b)."""

import argparse
import json
import multiprocessing
import sys
import time

import kintsugi

from mixpert.arrays import DEVICES
from mixpert.sites import Sites
from mixpert.statistics import Correlation

EXAMPLES = """examples:
  PYTHONPATH=apps python3 -m mixpert.processes
  PYTHONPATH=apps python3 -m mixpert.processes --device cuda --size 8192x32768 --levels native,auto,fp16x3,fp16 --most 5"""


def parse(words):
    parser = argparse.ArgumentParser(prog="mixpert.processes", description=__doc__, epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=sorted(DEVICES), default="cpu", help="cpu (numpy) or cuda (CuPy); default cpu")
    parser.add_argument("--size", default="48x256", help="vectors and samples of each process; default %(default)s")
    parser.add_argument("--levels", default="native,fp16x3", metavar="LIST", help="levels of the product; default %(default)s")
    parser.add_argument("--most", type=int, default=5, metavar="N", help="processes: 1 to N; default %(default)s")
    parser.add_argument("--seconds", type=float, default=0.3, help="for which each level runs; default %(default)s")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--output", metavar="FILE", help="write the results as JSON")
    options = parser.parse_args(words)
    sizes = options.size.split("x")
    if len(sizes) != 2 or not all(word.isdigit() and int(word) > 0 for word in sizes):
        parser.error(f"--size {options.size}: two positive numbers with x between")
    if options.most < 1 or not options.seconds > 0:
        parser.error(f"--most {options.most} --seconds {options.seconds}: at least 1 and above 0")
    options.sizes = [int(word) for word in sizes]
    return options


def synchronize(device):
    if device.name == "cuda":
        device.xp.cuda.Device().synchronize()


def work(number, options, barrier, results):
    """Runs one process: for every number of processes and level correlations for some seconds, all at once."""
    device = DEVICES[options.device]()
    program = Correlation(device, *options.sizes, seed=number + 1)
    for level in options.levels.split(","):
        program.run(Sites(device, default=level))
    synchronize(device)
    for processes in range(1, options.most + 1):
        for level in options.levels.split(","):
            barrier.wait()
            if number < processes:
                results.put((processes, level, *timed(device, program, level, options.seconds)))
            barrier.wait()


def timed(device, program, level, seconds):
    """Returns the number of correlations made until the time was over, and the seconds that they took."""
    begin = time.perf_counter()
    count = 0
    while time.perf_counter() - begin < seconds:
        program.run(Sites(device, default=level))
        synchronize(device)
        count += 1
    return count, time.perf_counter() - begin


def measure(options):
    """Returns a row for every number of processes and level: correlations a second of all processes together."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(options.most), context.Queue()
    workers = [context.Process(target=work, args=(i, options, barrier, results), daemon=True) for i in range(options.most)]
    for worker in workers:
        worker.start()
    rates = {}
    expected = len(options.levels.split(",")) * options.most * (options.most + 1) // 2
    for _ in range(expected):
        processes, level, count, seconds = results.get(timeout=300)
        rates[processes, level] = rates.get((processes, level), 0) + count / seconds
    for worker in workers:
        worker.join()
    return [{"processes": processes, "level": level, "rate": rate} for (processes, level), rate in sorted(rates.items())]


def document(rows, options):
    return {"format": "kintsugi.mixpert-processes", "format_version": 1, "version": kintsugi.__version__,
            "device": options.device, "machine": DEVICES[options.device]().description(), "sizes": options.sizes,
            "seconds": options.seconds, "rows": rows}


def main(words=None):
    options = parse(words)
    found = document(measure(options), options)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
    if options.json:
        print(json.dumps(found, indent=1))
        return 0
    for row in found["rows"]:
        print(f"{row['processes']} processes  {row['level']:<12} {row['rate']:10.2f} correlations a second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
