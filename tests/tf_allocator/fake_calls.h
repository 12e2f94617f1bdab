// What the fake libmets was asked, for tests; with FAKE_METS_CALLS=1.
#ifndef METS_TESTS_TF_ALLOCATOR_FAKE_CALLS_H_
#define METS_TESTS_TF_ALLOCATOR_FAKE_CALLS_H_

#include <string>

// Adds a line; `stream` is written behind it.
void NoteCall(const std::string& line, const void* stream = nullptr);

// The lines since the last call of this function; tests find it by dlsym.
extern "C" __attribute__((visibility("default"))) const char* fake_mets_calls();

#endif  // METS_TESTS_TF_ALLOCATOR_FAKE_CALLS_H_
