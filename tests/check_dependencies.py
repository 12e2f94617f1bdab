#!/usr/bin/env python3
"""Checks who may include whom (docs: README's layout; one rule per component).

usage: check_dependencies.py [ROOT]      check the tree; exit status 1 and one
                                         line per forbidden include if any
       check_dependencies.py --self-test prove that forbidden includes are found

An include is ours when it starts with one of our folders or with "mets/";
others are libraries or the system's. A rule says which of ours a component may
include, and which libraries and system headers it may not.
"""

import dataclasses
import pathlib
import re
import sys
import tempfile

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
SOURCES = {".h", ".hpp", ".cc", ".cpp", ".cu", ".c", ".inc"}
FOLDERS = ("common", "daemon", "client", "tf_allocator", "tests", "proto")
OURS = re.compile(r"^(common|daemon|client|tf_allocator|tests|mets)/")

ABI = ("client/include/mets/", "mets/mets.h", "mets/mets_")
PROTO = "mets/v1/"
RPC = r"(grpc|grpcpp|google/protobuf|mets/v1)/"
CUDA = r"(cuda|cuda_runtime|cuda_runtime_api|nvml|nccl)\.h$|cuda/"
SERVERS = r"(prometheus|civetweb|spdlog|fmt|systemd|nlohmann|CLI|toml\+\+)/"
IMPURE = (r"(thread|mutex|shared_mutex|condition_variable|future|fstream|"
          r"iostream|filesystem|chrono|random|cstdlib|ctime|"
          r"unistd\.h|fcntl\.h|time\.h|poll\.h|pthread\.h|signal\.h)$|sys/|"
          r"absl/(synchronization|time/clock|random)|"
          r"common/base/(clock|process|unique_fd|errno_status)\.h")


@dataclasses.dataclass(frozen=True)
class Rule:
    """What files under `folder` may include; the longest folder holds."""
    folder: str
    ours: tuple          # Prefixes of our headers that are allowed.
    forbidden: str = ""  # Regular expression of any other header.


RULES = (
    Rule("common/base/", ("common/base/",), f"{RPC}|{CUDA}|{SERVERS}"),
    Rule("common/device/", ("common/base/", "common/device/"),
         f"{RPC}|{CUDA}|{SERVERS}|common/device/cuda/"),
    Rule("common/device/cuda/", ("common/base/", "common/device/"),
         f"{RPC}|{SERVERS}"),
    Rule("common/ipc/", ("common/base/", "common/ipc/"),
         f"{RPC}|{CUDA}|{SERVERS}"),
    Rule("common/steps/", ("common/base/", "common/steps/"),
         f"{RPC}|{CUDA}|{SERVERS}|{IMPURE}"),
    Rule("common/trace/", ("common/base/", "common/trace/"),
         f"{RPC}|{CUDA}|{SERVERS}"),
    Rule("daemon/core/", ("common/base/", "common/steps/", "daemon/core/"),
         f"{RPC}|{CUDA}|{SERVERS}|{IMPURE}"),
    Rule("daemon/policy/",
         ("common/base/", "daemon/policy/", "daemon/core/types.h",
          "daemon/core/victims/victim_policy.h"),
         f"{RPC}|{CUDA}|{SERVERS}|{IMPURE}"),
    Rule("daemon/memory/", ("common/", "daemon/core/", "daemon/memory/"),
         f"{RPC}|{CUDA}"),
    Rule("daemon/transport/",
         ("common/", "daemon/core/", "daemon/transport/", PROTO), CUDA),
    Rule("daemon/telemetry/",
         ("common/", "daemon/core/", "daemon/telemetry/", PROTO), CUDA),
    Rule("daemon/status_page/",
         ("common/", "daemon/core/", "daemon/status_page/"), f"{RPC}|{CUDA}"),
    Rule("daemon/sim/",
         ("common/", "daemon/core/", "daemon/policy/", "daemon/sim/"),
         f"{RPC}|{CUDA}"),
    Rule("daemon/app/", ("common/", "daemon/", PROTO), CUDA),
    Rule("daemon/", ("common/base/", "daemon/app/"), f"{RPC}|{CUDA}"),
    Rule("client/include/", ABI, f"absl/|{RPC}|{CUDA}|{SERVERS}"),
    Rule("client/loader/", ABI + ("client/loader/",),
         f"absl/|{RPC}|{CUDA}|{SERVERS}"),
    Rule("client/torch/", ABI + ("client/loader/", "client/torch/"),
         f"absl/|torch/|{RPC}|{CUDA}"),
    Rule("client/preload/", ABI + ("client/preload/",), RPC),
    Rule("client/examples/", ABI + ("client/examples/",), RPC),
    Rule("client/", ("common/", "client/", PROTO) + ABI, CUDA),
    Rule("tf_allocator/", ABI + ("client/loader/", "tf_allocator/"),
         r"(grpc|grpcpp)/"),
    Rule("tests/", ("",)),
)


def rule_for(path):
    """The rule of a file, given by its path from the root."""
    matching = [rule for rule in RULES if path.startswith(rule.folder)]
    return max(matching, key=lambda rule: len(rule.folder), default=None)


def complaint(path, header):
    """Why the file must not include the header, or None."""
    rule = rule_for(path)
    if rule is None:
        return "no rule for this folder"
    if rule.folder != "tests/" and header.startswith("tests/"):
        return "nothing includes tests"
    if OURS.match(header) and not header.startswith(rule.ours):
        return f"{rule.folder} may include only {', '.join(rule.ours)} of ours"
    if rule.forbidden and re.match(rule.forbidden, header):
        return f"{rule.folder} must not know this header"
    return None


def check(root):
    """All complaints of a tree, as lines of text."""
    lines = []
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in SOURCES or not file.is_file():
                continue
            path = file.relative_to(root).as_posix()
            text = file.read_text(encoding="utf-8", errors="replace")
            for match in INCLUDE.finditer(text):
                why = complaint(path, match[1])
                if why is not None:
                    line = text.count("\n", 0, match.start(1)) + 1
                    lines.append(f"{path}:{line}: {match[1]}: {why}")
    return lines


FORBIDDEN = (
    ("common/base/a.h", "common/device/map_driver.h"),
    ("common/base/a.h", "grpcpp/grpcpp.h"),
    ("common/device/host/a.cc", "cuda.h"),
    ("common/device/a.cc", "common/ipc/descriptor_channel.h"),
    ("common/ipc/a.cc", "mets/v1/session.pb.h"),
    ("daemon/core/a.cc", "mets/v1/types.pb.h"),
    ("daemon/core/a.cc", "thread"),
    ("daemon/core/a.cc", "absl/time/clock.h"),
    ("daemon/core/a.cc", "sys/mman.h"),
    ("daemon/core/a.cc", "common/device/pool_driver.h"),
    ("daemon/core/a.cc", "daemon/policy/registry.h"),
    ("daemon/policy/a.cc", "daemon/core/chunks/chunk_ledger.h"),
    ("daemon/memory/a.cc", "daemon/transport/transport.h"),
    ("daemon/transport/a.cc", "daemon/telemetry/metrics_server.h"),
    ("daemon/telemetry/a.cc", "daemon/app/config/config.h"),
    ("daemon/main.cc", "daemon/core/core.h"),
    ("daemon/app/a.cc", "client/src/device.h"),
    ("client/src/a.cc", "daemon/core/types.h"),
    ("client/include/mets/a.h", "absl/status/status.h"),
    ("client/include/mets/a.h", "mets/v1/types.pb.h"),
    ("client/include/mets/a.hpp", "grpcpp/grpcpp.h"),
    ("client/loader/a.cc", "client/src/device.h"),
    ("client/loader/a.cc", "absl/status/status.h"),
    ("client/preload/a.cc", "client/src/device.h"),
    ("client/torch/a.cc", "client/src/device.h"),
    ("client/torch/a.cc", "torch/extension.h"),
    ("tf_allocator/tf/a.cc", "common/base/bytes.h"),
    ("tf_allocator/core/a.cc", "client/src/device.h"),
    ("client/src/a.cc", "tests/contract/backends.h"),
)
ALLOWED = (
    ("common/device/cuda/a.cc", "cuda.h"),
    ("common/base/a.cc", "sys/syscall.h"),
    ("daemon/core/a.cc", "absl/time/time.h"),
    ("daemon/core/a.cc", "common/base/bytes.h"),
    ("daemon/app/a.cc", "daemon/transport/transport.h"),
    ("daemon/main.cc", "daemon/app/run_metsd.h"),
    ("client/src/a.cc", "mets/v1/session.pb.h"),
    ("client/torch/a.cc", "client/loader/mets_api.h"),
    ("tf_allocator/core/a.h", "client/include/mets/mets.h"),
    ("tf_allocator/core/a.h", "client/loader/mets_api.h"),
    ("tf_allocator/tf/a.cc", "tensorflow/core/framework/allocator.h"),
    ("tests/core/a.cc", "daemon/core/state.h"),
)


def check_one(path, header):
    """The complaints about a tree with one file with one include."""
    with tempfile.TemporaryDirectory() as root:
        file = pathlib.Path(root) / path
        file.parent.mkdir(parents=True)
        file.write_text(f"// A file.\n\n#include \"{header}\"\nint x;\n",
                        encoding="utf-8")
        return check(pathlib.Path(root))


def self_test():
    """Complaints about this script."""
    wrong = []
    for path, header in FORBIDDEN:
        lines = check_one(path, header)
        if len(lines) != 1 or not lines[0].startswith(f"{path}:3: {header}"):
            wrong.append(f"not found: {path} includes {header}: {lines}")
    for path, header in ALLOWED:
        wrong += [f"false alarm: {line}" for line in check_one(path, header)]
    return wrong


def main(arguments):
    if arguments == ["--self-test"]:
        lines = self_test()
    else:
        root = pathlib.Path(arguments[0]) if arguments else (
            pathlib.Path(__file__).resolve().parent.parent)
        lines = check(root)
    print("\n".join(lines) if lines else "ok")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
