// The version of the headers a program is compiled with. The build reads it from here.
#pragma once

#define PANGRAD_VERSION_MAJOR 0
#define PANGRAD_VERSION_MINOR 1
#define PANGRAD_VERSION_PATCH 0
#define PANGRAD_VERSION "0.1.0"
