// The exceptions pangrad throws. Every mistake of a user is a pg::Error of one of the kinds below, raised
// where the operation is written; pg::InternalError marks a bug of ours. Nothing in the library calls abort
// or exit.
#pragma once

#include <stdexcept>
#include <string>

#if defined(_WIN32)
#define PG_API
#else
#define PG_API __attribute__((visibility("default")))
#endif

namespace pg {

/// Base of everything the library throws on purpose. `what()` begins with the operation in brackets:
/// "[reshape] ...".
class PG_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Error() override;
};

/// Shapes that do not fit each other or the operation.
class PG_API ShapeError : public Error {
 public:
  using Error::Error;
  ~ShapeError() override;
};
/// A dtype the operation does not take, or two that do not mix.
class PG_API DTypeError : public Error {
 public:
  using Error::Error;
  ~DTypeError() override;
};
/// Unknown devices, tensors on different devices, a device that cannot do what was asked.
class PG_API DeviceError : public Error {
 public:
  using Error::Error;
  ~DeviceError() override;
};
/// An index or axis out of range.
class PG_API IndexError : public Error {
 public:
  using Error::Error;
  ~IndexError() override;
};
/// Any other argument outside its domain.
class PG_API ValueError : public Error {
 public:
  using Error::Error;
  ~ValueError() override;
};
/// A missing, truncated or malformed file; the message gives the path and the byte offset.
class PG_API FileError : public Error {
 public:
  using Error::Error;
  ~FileError() override;
};
/// Memory ran out; the message says how much is in use. The program can go on.
class PG_API OutOfMemory : public Error {
 public:
  using Error::Error;
  ~OutOfMemory() override;
};
/// A function that cannot be captured, or a capture that cannot be replayed faithfully.
class PG_API CaptureError : public Error {
 public:
  using Error::Error;
  ~CaptureError() override;
};
/// A bug in pangrad. Please report it with its message.
class PG_API InternalError : public Error {
 public:
  using Error::Error;
  ~InternalError() override;
};

}  // namespace pg
