// A job larger than its device, in C++.
//
// Start a daemon with a small pool, then this program:
//
//     metsd --run-dir /tmp/mets --device host:128MiB --swap-space 1GiB &
//     METS_RUN_DIR=/tmp/mets larger_than_device
//
// It multiplies a matrix of twice the pool's size, kept as buffers of some
// rows each, by a vector, again and again: the power method, which finds the
// largest eigenvalue. The matrix is made so that this is known: row i has
// i % 7 + 1 in each column, so that the only eigenvalue besides 0 is the sum of
// one column. Each op names the rows that it reads; libmets brings them back,
// and metsd chooses what leaves for them.
//
// Ops here read with the CPU, which does for a host device; on a GPU, they
// would start kernels.
//
// Exit status 0: the eigenvalue is right, and bytes left the device and came
// back.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "mets/mets.hpp"

namespace {

constexpr uint64_t kColumns = 4096;
constexpr uint64_t kRowsPerBuffer = 512;
constexpr uint64_t kBufferBytes = kRowsPerBuffer * kColumns * sizeof(float);
constexpr int kRounds = 3;

// The value, or the end of the program with what went wrong.
template <typename T>
T Take(mets::Expected<T> expected) {
  if (expected) return *std::move(expected);
  std::fprintf(stderr, "%s\n", expected.status().message().c_str());
  std::exit(1);
}

float Entry(uint64_t row) { return static_cast<float>(row % 7 + 1); }

// Allocates within an op that says so: the buffer stays while it is filled.
mets::Buffer MakeRows(mets::Device& device, uint64_t first_row) {
  const mets::Op op = Take(device.Begin({mets::New(kBufferBytes)}));
  mets::Buffer rows = Take(device.Allocate(kBufferBytes));
  float* entries = rows.as<float>();
  for (uint64_t i = 0; i < kRowsPerBuffer * kColumns; ++i) {
    entries[i] = Entry(first_row + i / kColumns);
  }
  return rows;
}

// The product of some rows with a vector of `kColumns` entries; row r counts
// for entry r % kColumns, so that the matrix is folded into a square one.
void Multiply(mets::Device& device, const mets::Buffer& rows,
              uint64_t first_row, const std::vector<double>& vector,
              std::vector<double>* product) {
  const mets::Op op = Take(device.Begin({mets::Read(rows)}));
  const float* entry = rows.as<float>();
  for (uint64_t row = first_row; row < first_row + kRowsPerBuffer; ++row) {
    double sum = 0;
    for (uint64_t c = 0; c < kColumns; ++c) sum += *entry++ * vector[c];
    (*product)[row % kColumns] += sum;
  }
}

// Scales it to entries that sum to 1; returns the sum that it had.
double Normalise(std::vector<double>* vector) {
  double sum = 0;
  for (double entry : *vector) sum += entry;
  for (double& entry : *vector) entry /= sum;
  return sum;
}

}  // namespace

int main() {
  mets::OpenOptions options;
  options.job = "larger-than-device";
  mets::Client client = Take(mets::Client::Open(options));
  mets::Device device = Take(client.OpenDevice());
  const uint64_t pool = Take(device.Info()).pool_bytes;
  std::vector<mets::Buffer> matrix(2 * pool / kBufferBytes);
  double expected = 0;
  for (size_t b = 0; b < matrix.size(); ++b) {
    matrix[b] = MakeRows(device, b * kRowsPerBuffer);
    for (uint64_t r = 0; r < kRowsPerBuffer; ++r) {
      expected += Entry(b * kRowsPerBuffer + r);
    }
  }
  std::vector<double> vector(kColumns, 1.0 / kColumns);
  double eigenvalue = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> product(kColumns);
    for (size_t b = 0; b < matrix.size(); ++b) {
      Multiply(device, matrix[b], b * kRowsPerBuffer, vector, &product);
    }
    eigenvalue = Normalise(&product);
    vector = product;
  }
  const mets_stats_t stats = Take(device.Stats());
  std::printf(
      "a matrix of %.0f MiB on a device of %.0f MiB: eigenvalue %.0f "
      "(expected %.0f), %.0f MiB evicted, %.0f MiB restored\n",
      matrix.size() * kBufferBytes / 1048576.0, pool / 1048576.0, eigenvalue,
      expected, stats.evicted_bytes_total / 1048576.0,
      stats.restored_bytes_total / 1048576.0);
  const bool right = std::fabs(eigenvalue - expected) < 1e-6 * expected;
  return right && stats.evicted_bytes_total > 0 &&
                 stats.restored_bytes_total > 0
             ? 0
             : 1;
}
