"""Renames files from stacks of random calls, and writes the stack of each, as this interpreter knows it.

SEED STACKS: N.json has, of each new name, function, file and line of each call, the innermost first.
"""
import asyncio
import contextlib
import functools
import itertools
import json
import os
import random
import sys
import threading

draw = random.Random(int(sys.argv[1]))
numbers = itertools.count()
stacks = {}


def stack():
    found, frame = [], sys._getframe(1)
    while frame:
        found.append([frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return found


def leaf():
    name = f"f{next(numbers)}"
    with open(name, "w") as file:
        file.write("x")
    stacks[os.path.abspath(name + ".new")] = stack(); os.rename(name, name + ".new")


def step(depth):
    if depth:
        draw.choice(WAYS)(depth - 1)
    else:
        leaf()


def plain(depth):
    unused = 1
    step(depth)
    return unused


def over_lines(depth):
    return [
        1,
        step(
            depth,
        ),
        2,
    ]


def of_lambda(depth):
    return (lambda: step(depth))()


def of_generator(depth):
    def generate():
        yield 1

        yield step(depth)

    return list(generate())


def of_comprehension(depth):
    return [step(depth) for _ in range(1)] + [
        one for one in (step(0) for _ in range(1))
    ]


def of_sort(depth):
    return sorted([1], key=lambda _: step(depth))


def of_map(depth):
    return list(map(functools.partial(step), [depth]))


def of_text(depth):
    exec(compile("\n\ndef 関数(depth):\n    step(depth)\n\n関数(depth)", "日本/書.py", "exec"), {"step": step, "depth": depth})


def of_long_name(depth):
    exec(compile("step(depth)", "/long" * 200 + "/end.py", "exec"), {"step": step, "depth": depth})


def of_class_body(depth):
    class Body:
        value = step(depth)


class Object:
    @property
    def value(self):
        return step(self.depth)

    def __getattr__(self, name):
        if name == "missing":
            return step(self.depth)
        raise AttributeError(name)

    @staticmethod
    def alone(depth):
        step(depth)

    def __del__(self):
        if self.depth == 0:
            step(0)


def of_object(depth):
    it = Object()
    it.depth = depth + 1
    draw.choice([lambda: it.value, lambda: it.missing, lambda: Object.alone(depth)])()


def of_finalizer(depth):
    it = Object()
    it.depth = 0
    del it


def after_an_error(depth):
    try:
        raise ValueError
    except ValueError:
        step(depth)
    finally:
        pass


@contextlib.contextmanager
def around(depth):
    yield step(depth)


def of_context(depth):
    with around(depth):
        pass


def of_coroutine(depth):
    async def inner():
        step(depth)

    async def outer():
        await inner()

    with contextlib.suppress(StopIteration):
        outer().send(None)


def of_loop(depth):
    if threading.current_thread() is threading.main_thread():
        try:
            asyncio.get_running_loop()
        except RuntimeError:

            async def inner():
                step(depth)

            asyncio.run(inner())
            return
    step(depth)


def of_thread(depth):
    thread = threading.Thread(target=step, args=(depth,))
    thread.start()
    thread.join()


WAYS = [
    plain,
    over_lines,
    of_lambda,
    of_generator,
    of_comprehension,
    of_sort,
    of_map,
    of_text,
    of_long_name,
    of_class_body,
    of_object,
    of_finalizer,
    after_an_error,
    of_context,
    of_coroutine,
    of_loop,
    of_thread,
]
for _ in range(int(sys.argv[2])):
    step(draw.randrange(1, 9))
with open("stacks.json", "w") as file:
    json.dump(stacks, file)
