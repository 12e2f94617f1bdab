"""What of the zoo is recorded, at the sizes that live.py says, and how a profile
is kept."""

import lzma

MODELS = ["resnet50", "bert", "ncf"]
FIRST, LAST = 5, 12  # The steps; the first is 1.


def pack(profile, packed):
    """Writes the profile in a folder that TensorFlow has written, compressed and
    without tf.data's lines: these may have a hundred thousand events a step, and
    no operator."""
    from opspeedup import messages
    plane, = profile.glob("plugins/profile/*/*.xplane.pb")
    space = messages.XSpace.FromString(plane.read_bytes())
    for each in space.planes:
        lines = [line for line in each.lines
                 if not line.name.startswith("tf_data_")]
        del each.lines[:]
        each.lines.extend(lines)
    packed.write_bytes(lzma.compress(space.SerializeToString()))


def unpack(packed, plane):
    plane.write_bytes(lzma.decompress(packed.read_bytes()))
