// The destructors of the exceptions, out of line: they anchor each vtable and typeinfo in this library, so
// that a host catches what we throw also across shared objects.
#include <pangrad/error.h>

namespace pg {

Error::~Error() = default;
ShapeError::~ShapeError() = default;
DTypeError::~DTypeError() = default;
DeviceError::~DeviceError() = default;
IndexError::~IndexError() = default;
ValueError::~ValueError() = default;
FileError::~FileError() = default;
OutOfMemory::~OutOfMemory() = default;
CaptureError::~CaptureError() = default;
InternalError::~InternalError() = default;

}  // namespace pg
