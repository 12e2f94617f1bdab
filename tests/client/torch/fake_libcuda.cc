// A CUDA driver that can only name its devices: FAKE_CUDA_DEVICES of them
// (default 2); the second is a MIG instance.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Uuid {
  unsigned char bytes[16];
};

}  // namespace

extern "C" {

int cuInit(unsigned) { return 0; }

int cuDeviceGetCount(int* count) {
  const char* text = std::getenv("FAKE_CUDA_DEVICES");
  *count = text == nullptr ? 2 : std::atoi(text);
  return 0;
}

int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}

int cuDeviceGetName(char* name, int length, int device) {
  std::snprintf(name, length, "Fake GPU%s", device == 1 ? " MIG 1g.10gb" : "");
  return 0;
}

int cuDeviceGetUuid_v2(Uuid* uuid, int device) {
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = 16 * device + i;
  return 0;
}

}  // extern "C"
