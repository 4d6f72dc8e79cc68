#include <unistd.h>

/// In place of the system's: a round trip through a file needs no disk.
extern "C" int fsync(int) { return 0; }
