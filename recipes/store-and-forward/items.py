"""An item is a file, named by its id, that holds its id many times: a part of it can be told from the whole."""

SPOOL, BOX = "spool", "box"


def content(number):
    return b"item %08d\n" % number * 150
