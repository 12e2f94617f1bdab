// What a GPU's copies to the host keep waiting: mappings, and other streams'
// small copies. Copies 512 MiB again and again for half a second in each of
// several manners, while one thread maps 32 MiB elsewhere and another copies 4
// bytes to the host. No METS in it. On a machine with a GPU:
//
//     g++ -O2 -std=c++17 -I/usr/local/cuda/include copy_engine.cc -lcuda
//
// Manners: `same` stream for all pieces; every other piece `alternate`ly in a
// second stream, which waits for the first and is waited for; `paced`: the next
// piece is asked for when the last one has been copied.
#include <cuda.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

namespace {

constexpr size_t kMiB = 1 << 20;
constexpr size_t kAll = 512 * kMiB;
constexpr size_t kMapped = 32 * kMiB;
constexpr auto kTime = std::chrono::milliseconds(500);

void Check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = "?";
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "%s: %s\n", call, name);
  std::exit(1);
}
#define CHECK(call) Check(call, #call)

double Now() {  // Microseconds.
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double Median(std::vector<double> all) {
  if (all.empty()) return 0;
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

CUevent NewEvent() {
  CUevent event;
  CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  return event;
}

CUstream NewStream() {
  CUstream stream;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

void Await(CUevent event) {
  while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
  }
}

char* HostMemory() {
  void* memory = mmap(nullptr, kAll, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  CHECK(cuMemHostRegister(memory, kAll, CU_MEMHOSTREGISTER_PORTABLE));
  return static_cast<char*>(memory);
}

enum class Manner { kSame, kAlternate, kPaced };

// One direction of the bus.
struct Direction {
  bool out;
  CUdeviceptr device;
  char* host = HostMemory();
  CUstream first = NewStream(), second = NewStream();

  void Copy(size_t at, size_t size, CUstream stream) {
    CHECK(out ? cuMemcpyDtoHAsync(host + at, device + at, size, stream)
              : cuMemcpyHtoDAsync(device + at, host + at, size, stream));
  }
  void CopyBetween(size_t at, size_t size, CUevent event) {
    CHECK(cuEventRecord(event, first));
    CHECK(cuStreamWaitEvent(second, event, 0));
    Copy(at, size, second);
    CHECK(cuEventRecord(event, second));
    CHECK(cuStreamWaitEvent(first, event, 0));
  }
  // GB/s until `stop`; two rounds are under way at most.
  double Run(Manner manner, size_t piece, const std::atomic<bool>& stop) {
    const CUevent event = NewEvent();
    const CUevent rounds[2] = {NewEvent(), NewEvent()};
    const double begin = Now();
    double bytes = 0;
    bool turn = false;
    for (int round = 0; !stop; ++round) {
      for (size_t at = 0; at < kAll && !stop; at += piece, bytes += piece) {
        turn = !turn;
        if (manner == Manner::kAlternate && turn) {
          CopyBetween(at, piece, event);
          continue;
        }
        Copy(at, piece, first);
        if (manner != Manner::kPaced) continue;
        CHECK(cuEventRecord(event, first));
        Await(event);
      }
      CHECK(cuEventRecord(rounds[round % 2], first));
      if (round > 0) Await(rounds[(round - 1) % 2]);
    }
    CHECK(cuStreamSynchronize(first));
    return bytes / (Now() - begin) / 1e3;
  }
};

struct Waits {
  std::vector<double> map, access, unmap, small;
};

}  // namespace

int main() {
  CUdevice gpu;
  CUcontext context;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&gpu, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, gpu));
  CHECK(cuCtxSetCurrent(context));
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu};
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  const CUmemAccessDesc access = {properties.location,
                                  CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle chunk;
  CUdeviceptr range, small, data[2];
  CHECK(cuMemCreate(&chunk, kMapped, &properties, 0));
  CHECK(cuMemAddressReserve(&range, kMapped, 0, 0, 0));
  CHECK(cuMemAlloc(&small, 4));
  for (CUdeviceptr& memory : data) CHECK(cuMemAlloc(&memory, kAll));
  void* small_host;
  CHECK(cuMemHostAlloc(&small_host, 4, 0));
  const CUstream program = NewStream();
  Direction out{true, data[0]}, in{false, data[1]};

  const auto measure = [&](const char* name, Manner manner, size_t piece,
                           bool copies_out, bool copies_in) {
    std::atomic<bool> stop{false};
    double out_gbps = 0, in_gbps = 0;
    Waits waits;
    std::vector<std::thread> threads;
    const auto start = [&](std::function<void()> work) {
      threads.emplace_back([&context, work = std::move(work)] {
        CHECK(cuCtxSetCurrent(context));
        work();
      });
    };
    if (copies_out) start([&] { out_gbps = out.Run(manner, piece, stop); });
    if (copies_in) start([&] { in_gbps = in.Run(manner, piece, stop); });
    start([&] {
      while (!stop) {
        const double a = Now();
        CHECK(cuMemMap(range, kMapped, 0, chunk, 0));
        const double b = Now();
        CHECK(cuMemSetAccess(range, kMapped, &access, 1));
        const double c = Now();
        CHECK(cuMemUnmap(range, kMapped));
        waits.map.push_back(b - a);
        waits.access.push_back(c - b);
        waits.unmap.push_back(Now() - c);
        std::this_thread::sleep_for(std::chrono::microseconds(500));
      }
    });
    start([&] {
      const CUevent copied = NewEvent();
      while (!stop) {
        std::this_thread::sleep_for(std::chrono::microseconds(1500));
        const double begin = Now();
        CHECK(cuMemcpyDtoHAsync(small_host, small, 4, program));
        CHECK(cuEventRecord(copied, program));
        Await(copied);
        waits.small.push_back(Now() - begin);
      }
    });
    std::this_thread::sleep_for(kTime);
    stop = true;
    for (std::thread& thread : threads) thread.join();
    std::printf("%-10s%4zu MiB %6.1f out %6.1f in GB/s  small copy %6.0f  "
                "map %4.0f  set access %4.0f  unmap %4.0f us\n",
                name, piece / kMiB, out_gbps, in_gbps, Median(waits.small),
                Median(waits.map), Median(waits.access), Median(waits.unmap));
  };
  const auto measure_all = [&](bool copies_out, bool copies_in) {
    for (size_t piece : {64 * kMiB, 16 * kMiB}) {
      measure("same", Manner::kSame, piece, copies_out, copies_in);
      measure("alternate", Manner::kAlternate, piece, copies_out, copies_in);
      measure("paced", Manner::kPaced, piece, copies_out, copies_in);
    }
  };
  measure("nothing", Manner::kSame, kAll, false, false);
  measure_all(true, false);
  measure_all(true, true);
  measure_all(false, true);
}
