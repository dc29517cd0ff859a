"""An item is a file, named by its id, that says its id many times: a part of it can be told from the whole."""

import os

SPOOL = os.environ["REFIT_MOUNT"] + "/spool"
BOX = os.environ["REFIT_MOUNT"] + "/box"


def content(number):
    return b"item %08d\n" % number * 150
