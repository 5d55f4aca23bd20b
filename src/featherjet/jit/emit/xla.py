"""LLVM for XLA's calls: `handler`, which XLA calls with a frame of buffers, runs a kernel's `entry` on them.

The handler is the same for every kernel. What it runs stands in `job`, words that whoever loads the code writes
(`jit.xla`). It does what XLA's C API asks of a handler (xla/ffi/api/c_api.h, whose structs have the offsets below):
answers the question for its version, reads the buffers, and returns null or an error. Large batches become tasks on
XLA's own pool of threads, cut between whole vectors of samples; the last of them fulfils a promise to XLA.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..batches import GRAIN
from ..objects import ModuleText

# The words of `job`: addresses of code and data; of the byte strides as NumPy has them; of a pair for each operand,
# where it is (an argument of XLA's, a result, a constant) and its number or address; the number of operands; XLA's code
# for their type; the axes of one sample of the first result; which flags raise; samples in a task, or zero for none;
# addresses of a message for each flag.
JOB = ("entry", "data", "steps", "sources", "operands", "dtype", "core", "raising", "task", "messages")
ARGUMENT, RESULT, CONSTANT = range(3)
VERSION = (0, 1)  # of XLA's API: XLA accepts those from 0.1 up to its own
INVALID_ARGUMENT = 3  # XLA's code for errors
FRAME = {"extension": 8, "api": 16, "context": 24, "arguments": 72, "results": 112, "future": 168}
BUFFER = {"dtype": 16, "data": 24, "rank": 32, "dims": 40}
API = {"error": 48, "schedule": 136, "threads": 144, "promise": 152, "fulfil": 160, "fail": 168}
SHARES = 2  # tasks for each thread, so that a late one does not keep the others waiting for long

PRELUDE = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.cttz.i64(i64, i1)

define private i64 @word(ptr %table, i64 %k) alwaysinline {
  %p = getelementptr i64, ptr %table, i64 %k
  %x = load i64, ptr %p
  ret i64 %x
}

define private ptr @pointer(ptr %base, i64 %offset) alwaysinline {
  %p = getelementptr i8, ptr %base, i64 %offset
  %x = load ptr, ptr %p
  ret ptr %x
}

define private void @put(ptr %table, i64 %k, i64 %x) alwaysinline {
  %p = getelementptr i64, ptr %table, i64 %k
  store i64 %x, ptr %p
  ret void
}
"""

# Samples from %start on of the operands at %bases; the flags.
STRETCH = """
define private i64 @stretch(ptr %bases, i64 %start, i64 %count) {
  %n = call i64 @word(ptr @job, i64 $operands)
  %steps.word = call i64 @word(ptr @job, i64 $steps)
  %steps = inttoptr i64 %steps.word to ptr
  %more = add i64 %n, 1
  %args = alloca ptr, i64 %more
  %report = alloca i64
  %address = alloca ptr
  %dims = alloca i64
  store i64 0, ptr %report
  store ptr %report, ptr %address
  store i64 %count, ptr %dims
  store ptr %address, ptr %args
  br label %next
next:
  %k = phi i64 [0, %0], [%k1, %next]
  %k1 = add i64 %k, 1
  %step = call i64 @word(ptr %steps, i64 %k1)
  %shift = mul i64 %start, %step
  %base.at = getelementptr ptr, ptr %bases, i64 %k
  %base = load ptr, ptr %base.at
  %begin = getelementptr i8, ptr %base, i64 %shift
  %arg = getelementptr ptr, ptr %args, i64 %k1
  store ptr %begin, ptr %arg
  %go = icmp ult i64 %k1, %n
  br i1 %go, label %next, label %run
run:
  %entry.word = call i64 @word(ptr @job, i64 $entry)
  %entry = inttoptr i64 %entry.word to ptr
  %data.word = call i64 @word(ptr @job, i64 $data)
  %data = inttoptr i64 %data.word to ptr
  call void %entry(ptr %args, ptr %dims, ptr %steps, ptr %data)
  %flags = load i64, ptr %report
  ret i64 %flags
}
"""

# An error of XLA's if flags are set that raise, or null.
VERDICT = """
define private ptr @verdict(ptr %api, i64 %flags) {
  %raising = call i64 @word(ptr @job, i64 $raising)
  %bad = and i64 %flags, %raising
  %fine = icmp eq i64 %bad, 0
  br i1 %fine, label %none, label %some
none:
  ret ptr null
some:
  %k = call i64 @llvm.cttz.i64(i64 %bad, i1 true)
  %messages.word = call i64 @word(ptr @job, i64 $messages)
  %messages = inttoptr i64 %messages.word to ptr
  %message = call i64 @word(ptr %messages, i64 %k)
  %error = call ptr @error(ptr %api, i64 %message)
  ret ptr %error
}

define private ptr @error(ptr %api, i64 %message) {
  %a = alloca [4 x i64]
  call void @put(ptr %a, i64 0, i64 28)
  call void @put(ptr %a, i64 1, i64 0)
  call void @put(ptr %a, i64 2, i64 %message)
  call void @put(ptr %a, i64 3, i64 $invalid)
  %create = call ptr @pointer(ptr %api, i64 $error)
  %error = call ptr %create(ptr %a)
  ret ptr %error
}
"""

# A task is (crew, start, count); a crew is (tasks to be done, flags, api, future, bases of the operands).
TASK = """
define private void @task(ptr %t) {
  %crew = load ptr, ptr %t
  %start = call i64 @word(ptr %t, i64 1)
  %count = call i64 @word(ptr %t, i64 2)
  %bases = getelementptr i64, ptr %crew, i64 4
  %own = call i64 @stretch(ptr %bases, i64 %start, i64 %count)
  %flags.at = getelementptr i64, ptr %crew, i64 1
  %old = atomicrmw or ptr %flags.at, i64 %own acq_rel
  %left = atomicrmw sub ptr %crew, i64 1 acq_rel
  %last = icmp eq i64 %left, 1
  br i1 %last, label %finish, label %out
finish:
  %flags = load i64, ptr %flags.at
  %api = call ptr @pointer(ptr %crew, i64 16)
  %future = call i64 @word(ptr %crew, i64 3)
  call void @free(ptr %crew)
  %error = call ptr @verdict(ptr %api, i64 %flags)
  %fine = icmp eq ptr %error, null
  %a = alloca [4 x i64]
  %size = select i1 %fine, i64 24, i64 32
  call void @put(ptr %a, i64 0, i64 %size)
  call void @put(ptr %a, i64 1, i64 0)
  call void @put(ptr %a, i64 2, i64 %future)
  %error.word = ptrtoint ptr %error to i64
  call void @put(ptr %a, i64 3, i64 %error.word)
  %slot = select i1 %fine, i64 $fulfil, i64 $fail
  %tell = call ptr @pointer(ptr %api, i64 %slot)
  %ignored = call ptr %tell(ptr %a)
  br label %out
out:
  ret void
}
"""

# Hands all samples to XLA's threads, in tasks; false if there are too few threads or samples.
SHARE = """
define private i1 @share(ptr %frame, ptr %api, ptr %bases, i64 %total) {
  %least = call i64 @word(ptr @job, i64 $task)
  %serial = icmp eq i64 %least, 0
  br i1 %serial, label %no, label %ask
ask:
  %twice = mul i64 %least, 2
  %few = icmp ult i64 %total, %twice
  br i1 %few, label %no, label %ask.threads
ask.threads:
  %context = call ptr @pointer(ptr %frame, i64 $context)
  %context.word = ptrtoint ptr %context to i64
  %threads.at = alloca i64
  store i64 1, ptr %threads.at
  %threads.word = ptrtoint ptr %threads.at to i64
  %a = alloca [5 x i64]
  call void @put(ptr %a, i64 0, i64 32)
  call void @put(ptr %a, i64 1, i64 0)
  call void @put(ptr %a, i64 2, i64 %context.word)
  call void @put(ptr %a, i64 3, i64 %threads.word)
  %count.threads = call ptr @pointer(ptr %api, i64 $threads)
  %failed = call ptr %count.threads(ptr %a)
  %threads = load i64, ptr %threads.at
  %alone = icmp ult i64 %threads, 2
  br i1 %alone, label %no, label %plan
plan:
  %shares = mul i64 %threads, $shares
  %most = udiv i64 %total, %least
  %wanted = call i64 @llvm.umin.i64(i64 %shares, i64 %most)
  %each = udiv i64 %total, %wanted
  %each.up = add i64 %each, $grain
  %grains = udiv i64 %each.up, $grain
  %size = mul i64 %grains, $grain
  %total.up = add i64 %total, %size
  %total.up1 = sub i64 %total.up, 1
  %tasks = udiv i64 %total.up1, %size
  %n = call i64 @word(ptr @job, i64 $operands)
  %words.tasks = mul i64 %tasks, 3
  %words.crew = add i64 %n, 4
  %words = add i64 %words.tasks, %words.crew
  %bytes = mul i64 %words, 8
  %crew = call ptr @malloc(i64 %bytes)
  %nothing = icmp eq ptr %crew, null
  br i1 %nothing, label %no, label %hire
hire:
  call void @put(ptr %a, i64 0, i64 24)
  call void @put(ptr %a, i64 1, i64 0)
  %promise = call ptr @pointer(ptr %api, i64 $promise)
  %failed.promise = call ptr %promise(ptr %a)
  %future = call i64 @word(ptr %a, i64 2)
  %future.at = getelementptr i8, ptr %frame, i64 $future
  store i64 %future, ptr %future.at
  %api.word = ptrtoint ptr %api to i64
  call void @put(ptr %crew, i64 0, i64 %tasks)
  call void @put(ptr %crew, i64 1, i64 0)
  call void @put(ptr %crew, i64 2, i64 %api.word)
  call void @put(ptr %crew, i64 3, i64 %future)
  br label %copy
copy:
  %i = phi i64 [0, %hire], [%i1, %copy]
  %base = call i64 @word(ptr %bases, i64 %i)
  %to = add i64 %i, 4
  call void @put(ptr %crew, i64 %to, i64 %base)
  %i1 = add i64 %i, 1
  %again = icmp ult i64 %i1, %n
  br i1 %again, label %copy, label %schedule
schedule:
  %crew.word = ptrtoint ptr %crew to i64
  %task.word = ptrtoint ptr @task to i64
  %first = getelementptr i64, ptr %crew, i64 %words.crew
  %call = call ptr @pointer(ptr %api, i64 $schedule)
  call void @put(ptr %a, i64 0, i64 40)
  call void @put(ptr %a, i64 2, i64 %context.word)
  call void @put(ptr %a, i64 3, i64 %task.word)
  br label %each.task
each.task:
  %j = phi i64 [0, %schedule], [%j1, %handed]
  %offset = mul i64 %j, 3
  %t = getelementptr i64, ptr %first, i64 %offset
  %start = mul i64 %j, %size
  %rest = sub i64 %total, %start
  %count = call i64 @llvm.umin.i64(i64 %rest, i64 %size)
  call void @put(ptr %t, i64 0, i64 %crew.word)
  call void @put(ptr %t, i64 1, i64 %start)
  call void @put(ptr %t, i64 2, i64 %count)
  %j1 = add i64 %j, 1
  %is.last = icmp eq i64 %j1, %tasks
  br i1 %is.last, label %own, label %hand
hand:
  %t.word = ptrtoint ptr %t to i64
  call void @put(ptr %a, i64 4, i64 %t.word)
  %refused = call ptr %call(ptr %a)
  %taken = icmp eq ptr %refused, null
  br i1 %taken, label %handed, label %self
self:
  call void @task(ptr %t)
  br label %handed
handed:
  br label %each.task
own:
  call void @task(ptr %t)
  ret i1 true
no:
  ret i1 false
}
"""

HANDLER = """
define ptr @handler(ptr %frame) {
  %extension = call ptr @pointer(ptr %frame, i64 $extension)
  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %execute, label %asked
asked:
  %what.at = getelementptr i8, ptr %extension, i64 8
  %what = load i32, ptr %what.at
  %metadata = icmp eq i32 %what, 1
  br i1 %metadata, label %answer, label %execute
answer:
  %about = call ptr @pointer(ptr %extension, i64 24)
  %major = getelementptr i8, ptr %about, i64 24
  store i32 $major, ptr %major
  %minor = getelementptr i8, ptr %about, i64 28
  store i32 $minor, ptr %minor
  %traits = getelementptr i8, ptr %about, i64 32
  store i32 0, ptr %traits
  ret ptr null
execute:
  %api = call ptr @pointer(ptr %frame, i64 $api)
  %arguments = call ptr @pointer(ptr %frame, i64 $arguments)
  %results = call ptr @pointer(ptr %frame, i64 $results)
  %n = call i64 @word(ptr @job, i64 $operands)
  %bases = alloca ptr, i64 %n
  %sources.word = call i64 @word(ptr @job, i64 $sources)
  %sources = inttoptr i64 %sources.word to ptr
  %dtype = call i64 @word(ptr @job, i64 $dtype)
  br label %operand
operand:
  %k = phi i64 [0, %execute], [%k1, %keep]
  %k2 = mul i64 %k, 2
  %kind = call i64 @word(ptr %sources, i64 %k2)
  %k21 = add i64 %k2, 1
  %which = call i64 @word(ptr %sources, i64 %k21)
  %constant = icmp eq i64 %kind, $constant
  %fixed = inttoptr i64 %which to ptr
  br i1 %constant, label %keep, label %buffer
buffer:
  %is.argument = icmp eq i64 %kind, $argument
  %list = select i1 %is.argument, ptr %arguments, ptr %results
  %at = getelementptr ptr, ptr %list, i64 %which
  %given = load ptr, ptr %at
  %type.at = getelementptr i8, ptr %given, i64 $dtype.at
  %type = load i32, ptr %type.at
  %type.word = zext i32 %type to i64
  %right = icmp eq i64 %type.word, %dtype
  %there = call ptr @pointer(ptr %given, i64 $data.at)
  br i1 %right, label %keep, label %mistyped
mistyped:
  %message = ptrtoint ptr @mistyped to i64
  %wrong = call ptr @error(ptr %api, i64 %message)
  ret ptr %wrong
keep:
  %base = phi ptr [%fixed, %operand], [%there, %buffer]
  %slot = getelementptr ptr, ptr %bases, i64 %k
  store ptr %base, ptr %slot
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %n
  br i1 %more, label %operand, label %size
size:
  %first = load ptr, ptr %results
  %rank.at = getelementptr i8, ptr %first, i64 $rank
  %rank = load i64, ptr %rank.at
  %dims = call ptr @pointer(ptr %first, i64 $dims)
  %core = call i64 @word(ptr @job, i64 $core)
  %axes = sub i64 %rank, %core
  br label %axis
axis:
  %i = phi i64 [0, %size], [%i1, %longer]
  %total = phi i64 [1, %size], [%total1, %longer]
  %any = icmp slt i64 %i, %axes
  br i1 %any, label %longer, label %run
longer:
  %length = call i64 @word(ptr %dims, i64 %i)
  %total1 = mul i64 %total, %length
  %i1 = add i64 %i, 1
  br label %axis
run:
  %shared = call i1 @share(ptr %frame, ptr %api, ptr %bases, i64 %total)
  br i1 %shared, label %later, label %now
later:
  ret ptr null
now:
  %flags = call i64 @stretch(ptr %bases, i64 0, i64 %total)
  %error = call ptr @verdict(ptr %api, i64 %flags)
  ret ptr %error
}
"""
MISTYPED = "featherjet: an array has another precision than the code was made for"


def emit_handler() -> Iterator[ModuleText]:
    """The module with `handler` and `job`."""
    words = {name: k for k, name in enumerate(JOB)}
    values = {**words, **FRAME, **API, "rank": BUFFER["rank"], "dims": BUFFER["dims"]}
    values |= {"dtype.at": BUFFER["dtype"], "data.at": BUFFER["data"], "grain": GRAIN, "shares": SHARES}
    values |= {"argument": ARGUMENT, "constant": CONSTANT, "invalid": INVALID_ARGUMENT}
    values |= {"major": VERSION[0], "minor": VERSION[1]}
    text = "".join([PRELUDE, STRETCH, VERDICT, TASK, SHARE, HANDLER])
    for name in sorted(values, key=len, reverse=True):
        text = text.replace(f"${name}", str(values[name]))
    message = f'@mistyped = private constant [{len(MISTYPED) + 1} x i8] c"{MISTYPED}\\00"'
    job = f"@job = global [{len(JOB)} x i64] zeroinitializer"
    yield ModuleText("\n".join([message, job, text]))
