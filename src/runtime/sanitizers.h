// Which sanitizer this is compiled with, whichever compiler does it: PG_ASAN and PG_TSAN are 1 or 0.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PG_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define PG_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(PG_ASAN)
#define PG_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__) && !defined(PG_TSAN)
#define PG_TSAN 1
#endif
#ifndef PG_ASAN
#define PG_ASAN 0
#endif
#ifndef PG_TSAN
#define PG_TSAN 0
#endif
