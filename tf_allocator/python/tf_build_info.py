"""Prints what building the plug-in needs: version;folder;C++11 ABI."""

import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["METS_DISABLE"] = "1"
try:
    import tensorflow as tf
except ImportError as error:
    sys.exit(f"tf_build_info: {error}")

flags = tf.sysconfig.get_compile_flags()
abi = next((f.split("=")[1] for f in flags if "CXX11_ABI" in f), "1")
print(f"{tf.__version__};{pathlib.Path(tf.__file__).parent};{abi}")
