// The progress bar, on a file and on a pseudo terminal.
#include "base/progress.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

namespace pg {
namespace {

std::string read_all(std::FILE* file) {
  std::string text(1 << 16, '\0');
  std::fseek(file, 0, SEEK_SET);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}

TEST(Progress, PlainLinesAreFewAndWhole) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  {
    Progress progress(140,
                      {.label = "training", .unit = "samples", .units_per_step = 512, .out = file.get()});
    for (int i = 0; i < 140; i++) progress.advance("loss 0.25");
  }
  std::string text = read_all(file.get());
  EXPECT_EQ(std::ranges::count(text, '\n'), 10) << text;
  EXPECT_TRUE(text.starts_with("training 14/140  loss 0.25  ")) << text;
  EXPECT_NE(text.find("training 140/140  loss 0.25  "), std::string::npos) << text;
  EXPECT_NE(text.find(" samples/s"), std::string::npos);
  EXPECT_NE(text.find(" left\n"), std::string::npos);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(Progress, StoppingEarlySaysHowFarItCame) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  {
    Progress progress(100, {.out = file.get()});
    for (int i = 0; i < 3; i++) progress.advance("");
  }
  EXPECT_TRUE(read_all(file.get()).starts_with("3/100  "));
}

TEST(Progress, NothingToDoPrintsNothing) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  {
    Progress progress(0, {.out = file.get()});
  }
  EXPECT_EQ(read_all(file.get()), "");
}

TEST(Progress, ATerminalGetsOneLineWithinItsWidth) {
  int master = 0;
  int slave = 0;
  winsize size{.ws_row = 24, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, &size), 0);
  {
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> terminal(fdopen(slave, "w"), std::fclose);
    {
      Progress progress(2, {.label = "training", .out = terminal.get()});
      progress.advance(std::string(100, 'x'));
      progress.advance("done");
    }
    // The terminal hands over what was written piece by piece; the newline is the last of it.
    std::string text;
    char buffer[1 << 12];
    for (ssize_t length = 1; length > 0 && text.find('\n') == std::string::npos;) {
      length = read(master, buffer, sizeof(buffer));
      if (length > 0) text.append(buffer, static_cast<size_t>(length));
    }
    EXPECT_TRUE(text.starts_with("\rtraining [                        ] 0/2")) << text;
    EXPECT_NE(text.find("\rtraining [========================] 2/2  done"), std::string::npos) << text;
    EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
    size_t begin = 0;
    for (size_t end = text.find("\x1b[K"); end != std::string::npos; end = text.find("\x1b[K", begin)) {
      EXPECT_LT(end - begin - 1, 60u);  // without the carriage return
      begin = end + 3;
    }
  }
  close(master);
}

}  // namespace
}  // namespace pg
