"""The Extension list and the sanitize/coverage switches; all metadata is in pyproject.toml."""

import os
import shutil
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SANITIZE = os.environ.get("MQINDEX_SANITIZE", "")  # "address,undefined" or "thread"
GCOV = bool(os.environ.get("MQINDEX_GCOV"))  # which lines and branches of src_c ran
COVERAGE = bool(os.environ.get("MQINDEX_COVERAGE"))
MACROS = [("CYTHON_TRACE_NOGIL", "1"), ("CYTHON_USE_SYS_MONITORING", "0")] if COVERAGE else []

UNITS = {  # module -> the C units that it compiles
    "guard": ["mqi_guard"],  # here only: its registry must be one
    "keys": ["mqi_hash"],
    "arrow": [],
    "memory": [],
    "arrays": [],
    "numbers": [],
    "index_entries": ["mqi_index_put", "mqi_index_select", "mqi_hash"],
    "index_file": ["mqi_index_file"],
    "file_watch": [],
    "key_filter": ["mqi_key_filter"],
    "sidecar": ["mqi_index_cold", "mqi_index_fence", "mqi_key_filter"],
    "index_sort": ["mqi_index_sort", "mqi_index_file"],
    "single_calls": ["mqi_index_put", "mqi_hash"],
    "index_writer": ["mqi_hash"],
    "kafka_index": ["mqi_kafka_index", "mqi_kafka_floor"],
    "kafka_log": ["mqi_kafka_log", "mqi_kafka_resync", "mqi_crc_sums"],
    "kafka_recovery": ["mqi_kafka_recovery", "mqi_kafka_tally", "mqi_kafka_index", "mqi_kafka_resync", "mqi_crc_sums"],
    "kafka_records": ["mqi_kafka_records"],
    "crc": ["mqi_crc"],  # here only: others are given its functions
    "commit_log": ["mqi_log_frame", "mqi_log_find", "mqi_log_scan"],
    "log_extract": ["mqi_log_frame", "mqi_log_find", "mqi_log_extract", "mqi_log_queues", "mqi_hash"],
    "log_columns": ["mqi_log_frame", "mqi_log_scan", "mqi_log_columns", "mqi_log_text"],
    "consume_queue": ["mqi_consume_queue", "mqi_unit_tally"],
    "queue_view": ["mqi_consume_queue"],
    "log_message": ["mqi_log_frame", "mqi_log_scan", "mqi_log_text"],
    "pieces": ["mqi_log_text"],
    "group_commit": ["mqi_group_commit"],
    "names": [],
    "ragged": [],
    "owner": [],
    "log_writer": ["mqi_log_frame", "mqi_log_append", "mqi_log_encode"],
}
HEADERS = [f"src_c/{name}" for name in sorted(os.listdir("src_c")) if name.endswith(".h")]


class BuildExt(build_ext):
    def build_extension(self, extension: Extension) -> None:
        shared = self.build_temp
        if GCOV:  # a unit of several modules is compiled for each: they would overwrite each other's counts
            self.build_temp = os.path.join(shared, extension.name)
        super().build_extension(extension)
        self.build_temp = shared

    def build_extensions(self) -> None:
        compiler = self.compiler.compiler_so[0]
        if shutil.which(compiler) is None:
            sys.exit(
                f"mqindex: no C compiler: {compiler} is not there; install one (gcc or clang), name it in CC, or let "
                "pip take a wheel (--only-binary mqindex)"
            )
        if self.inplace:  # a module that was renamed leaves a file that Python would still import
            for path in Path("mqindex/_native").glob("*.so"):
                if path.name.split(".")[0] not in UNITS:
                    path.unlink()
        for extension in self.extensions:
            if SANITIZE:
                extension.extra_compile_args += ["-O1", "-g", "-fno-omit-frame-pointer", f"-fsanitize={SANITIZE}"]
                extension.extra_link_args += [f"-fsanitize={SANITIZE}"]
            elif GCOV:
                extension.extra_compile_args += ["-O0", "-g", "--coverage", "-fprofile-update=atomic"]
                extension.extra_link_args += ["--coverage"]
            else:
                extension.extra_compile_args += ["-O3", "-g0", "-fvisibility=hidden", "-fstack-protector-strong"]
            extension.extra_compile_args += ["-std=gnu11"]
        super().build_extensions()


setup(
    ext_modules=cythonize(
        [
            Extension(
                f"mqindex._native.{module}",
                [f"mqindex/_native/{module}.pyx", *(f"src_c/{unit}.c" for unit in units)],
                include_dirs=["src_c"],
                depends=HEADERS,
                define_macros=MACROS,
            )
            for module, units in UNITS.items()
        ],
        build_dir=None if COVERAGE else "build/cython",
        compiler_directives={"linetrace": True} if COVERAGE else {},
        force=bool(COVERAGE or SANITIZE or GCOV),
    ),
    cmdclass={"build_ext": BuildExt},
)
