// The C ABI of libpangrad_llvm, the only library here that links LLVM. runtime/cpu/llvm_compiler.cpp opens it
// privately at the first compile and calls nothing else, so a host program may carry any other LLVM. Pure C
// types: no exception, no C++ object and no allocator crosses this line.
#pragma once

#include <stddef.h>  // NOLINT(modernize-deprecated-headers): this is C

#ifdef __cplusplus
extern "C" {
#endif

/// Changes with every incompatible change below; the caller compares it with pg_llvm_abi() and refuses
/// another.
#define PG_LLVM_ABI 1

/// A target and a way to compile for it. Every function that takes one may be called from any number of
/// threads at once.
typedef struct pg_llvm_compiler pg_llvm_compiler;

/// What to compile for, and how. Null strings mean the default.
typedef struct {
  const char* triple;  ///< "x86_64-linux-gnu"; default: this machine's
  const char*
      cpu;  ///< "native" (the default) detects this machine's CPU and its features; else LLVM's name of one
  const char* features;  ///< "+avx2,-fma", after those of the CPU
  const char* passes;    ///< pipeline of the middle end in LLVM's -passes= syntax; default: kDefaultPasses in
                         ///< llvm_shim.cpp
  int level;             ///< of instruction selection and scheduling, 0 to 3
} pg_llvm_options;

/// What compiling makes.
typedef enum {
  PG_LLVM_OBJECT,    ///< a relocatable object file
  PG_LLVM_ASSEMBLY,  ///< its text
  PG_LLVM_IR,        ///< the module as it leaves the middle end, as text
} pg_llvm_output;

/// Bytes that pg_llvm_free frees.
typedef struct {
  char* data;
  size_t bytes;
} pg_llvm_buffer;

/// PG_LLVM_ABI of this library.
int pg_llvm_abi(void);
/// Version of LLVM, "19.1.7"; static storage.
const char* pg_llvm_version(void);

/// A compiler, or null and a message in *error, which pg_llvm_free frees.
pg_llvm_compiler* pg_llvm_create(const pg_llvm_options* options, char** error);
/// No call may be using the compiler. Null is allowed.
void pg_llvm_destroy(pg_llvm_compiler* compiler);
/// Compiles a module of LLVM IR text (its triple and data layout are replaced). Position independent, small
/// code model; functions are marked so that no call of the C library is made up from loops. 0 and the result
/// in *out; else a message in *error, which pg_llvm_free frees. Also what LLVM calls a fatal error comes back
/// as a message: the process goes on, some of LLVM's memory is lost.
int pg_llvm_compile(pg_llvm_compiler* compiler, const char* text, size_t bytes, pg_llvm_output output,
                    pg_llvm_buffer* out, char** error);

/// Frees what the functions above returned. Null is allowed.
void pg_llvm_free(void* memory);

#ifdef __cplusplus
}
#endif
