#!/usr/bin/python3
"""Makes geoid.npy from the EGM96 grid of Debian's package proj-data.

    apt-get download proj-data && dpkg -x proj-data_*.deb proj-data
    ./make_geoid.py proj-data/usr/share/proj/egm96_15.gtx geoid.npy

A .gtx file is big-endian: four doubles (latitude and longitude of the first element, latitude and
longitude step, in degrees), two int32 (rows, columns), then rows * columns float32 in metres, the
southernmost row first.
"""

import argparse
import sys

import numpy

HEADER = numpy.dtype([("south", ">f8"), ("west", ">f8"), ("latitude_step", ">f8"), ("longitude_step", ">f8"),
                      ("rows", ">i4"), ("columns", ">i4")])
NO_DATA = numpy.float32(-88.8888)


def read_gtx(path):
    """Heights, rows from south to north, and the header record of a .gtx file."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < HEADER.itemsize:
        raise ValueError(f"{path}: {len(data)} bytes are less than the {HEADER.itemsize} of a .gtx header")
    header = numpy.frombuffer(data, HEADER, count=1)[0]
    rows, columns = int(header["rows"]), int(header["columns"])
    expected = HEADER.itemsize + 4 * rows * columns
    if rows <= 0 or columns <= 0 or len(data) != expected:
        raise ValueError(f"{path}: {rows} x {columns} heights need {expected} bytes, the file has {len(data)}")
    heights = numpy.frombuffer(data, ">f4", offset=HEADER.itemsize).reshape(rows, columns)
    if (heights == NO_DATA).any() or not numpy.isfinite(heights).all():
        raise ValueError(f"{path}: some heights are missing")
    return heights, header


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grid", help="egm96_15.gtx")
    parser.add_argument("output", help="geoid.npy")
    arguments = parser.parse_args()
    try:
        heights, header = read_gtx(arguments.grid)
    except (OSError, ValueError) as error:
        sys.exit(f"make_geoid.py: {error}")
    thinned = numpy.ascontiguousarray(heights[::4, ::4], dtype="<f4")
    numpy.save(arguments.output, thinned)
    print(f"{arguments.output}: {thinned.shape[0]} parallels x {thinned.shape[1]} meridians, "
          f"{4 * header['latitude_step']:g} x {4 * header['longitude_step']:g} degrees from "
          f"{header['south']:g}, {header['west']:g}; heights {thinned.min():.3f} to {thinned.max():.3f} m")


if __name__ == "__main__":
    main()
