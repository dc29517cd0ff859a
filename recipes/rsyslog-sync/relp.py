"""For the promise: sends lines over RELP, one after the other, and prints the number of each that was answered with 200.

The protocol: https://github.com/rsyslog/librelp/blob/master/doc/relp.html
"""

import os
import socket
import time

PORT = int(os.environ["REFIT_PORT_RELP"])


def ask(connection, answers, transaction, command, data):
    connection.sendall(b"%d %s %d %s\n" % (transaction, command, len(data), data))
    # TXNR SP "rsp" SP DATALEN SP DATA LF
    number, _, length = (word(answers) for _ in range(3))
    data = answers.read(int(length) + 1)
    if int(number) != transaction or not data.startswith(b"200"):
        raise SystemExit(f"{command} {transaction} was answered with {number} {data}")


def word(answers):
    text = b""
    while not text.endswith(b" "):
        byte = answers.read(1)
        if not byte:
            raise SystemExit("rsyslogd closed the connection")
        text += byte
    return text[:-1]


def connect():
    while True:
        try:
            return socket.create_connection(("127.0.0.1", PORT))
        except ConnectionRefusedError:
            time.sleep(0.01)


connection = connect()
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
answers = connection.makefile("rb")
ask(connection, answers, 1, b"open", b"relp_version=0\nrelp_software=refit\ncommands=syslog")
number = 0
while True:
    number += 1
    ask(connection, answers, number + 1, b"syslog", b"<13>Jan  1 00:00:00 refit load: %d" % number)
    os.write(1, b"%d\n" % number)
    time.sleep(0.002)
