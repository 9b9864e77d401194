// A compile worker that does what the name of the request says, most of it wrong. Started as kiln-compile is.
// How it starts, the file PROGRAM.start says where there is one: "silent", "garbage", "other version",
// "exit".

#include <linux/sockios.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "runtime/compile/protocol.hpp"

namespace {

using namespace kiln::compile;

bool read_exactly(std::string& bytes) {
    for (std::size_t used = 0; used < bytes.size();) {
        const ssize_t got = ::read(STDIN_FILENO, bytes.data() + used, bytes.size() - used);
        if (got <= 0) {
            return false;
        }
        used += static_cast<std::size_t>(got);
    }
    return true;
}

void write_all(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
        if (written <= 0) {
            std::exit(9);
        }
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

// A whole reply that says nothing but that it was given.
std::string served(std::uint64_t sequence) {
    Reply reply;
    reply.error = {kiln::ErrorCode::bad_input, kiln::Stage::compile, "served"};
    return encode_reply(sequence, reply);
}

[[noreturn]] void hang() {
    while (true) {
        ::pause();
    }
}

void wait_a_little() {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

// A child that lives until it is killed.
int leave_child() {
    const pid_t child = ::fork();
    if (child == 0) {
        hang();
    }
    return child;
}

void answer(const std::string& name, std::uint64_t sequence) {
    if (name == "crash") {
        std::fprintf(stderr, "about to crash\n");
        ::raise(SIGSEGV);
    } else if (name == "exit") {
        std::fprintf(stderr, "about to give up\n");
        std::exit(7);
    } else if (name == "hang") {
        std::fprintf(stderr, "about to hang\n");
        hang();
    } else if (name == "misleading words") {
        std::fprintf(stderr, "this kernel ran out of its registers\n");
        ::raise(SIGSEGV);
    } else if (name == "grandchild") {
        std::fprintf(stderr, "about to hang with the child %d\n", leave_child());
        hang();
    } else if (name == "child that holds the socket") {
        std::fprintf(stderr, "leaving the child %d\n", leave_child());
        std::exit(7);
    } else if (name == "deaf") {
        ::signal(SIGTERM, SIG_IGN);
        ::signal(SIGINT, SIG_IGN);
        ::signal(SIGHUP, SIG_IGN);
        std::fprintf(stderr, "not listening\n");
        hang();
    } else if (name == "stopped") {
        ::raise(SIGSTOP);
    } else if (name == "flood before the answer") {
        const std::string line(1000, 'x');
        for (int i = 0; i < 20'000; ++i) {
            std::fprintf(stderr, "%s\n", line.c_str());
        }
        write_all(served(sequence));
    } else if (name == "flood") {
        const std::string line(1000, 'x');
        while (true) {
            std::fprintf(stderr, "%s\n", line.c_str());
        }
    } else if (name == "garbage") {
        write_all(std::string(100'000, '\xa5'));
    } else if (name == "half reply") {
        const std::string whole = served(sequence);
        write_all(std::string_view(whole).substr(0, whole.size() / 2));
        std::exit(0);
    } else if (name == "half head") {
        write_all(std::string_view(served(sequence)).substr(0, kFrameHeadBytes / 2));
        std::exit(0);
    } else if (name == "slow half") {
        write_all(std::string_view(served(sequence)).substr(0, kFrameHeadBytes + 2));
        hang();
    } else if (name == "closed") {
        ::close(STDOUT_FILENO);
        ::close(STDIN_FILENO);
        hang();
    } else if (name == "huge") {
        std::string frame = served(sequence).substr(0, kFrameHeadBytes);
        frame.replace(kFrameHeadBytes - 8, 8, std::string(8, '\x7f'));
        write_all(frame);
        hang();
    } else if (name == "longer than it says") {
        std::string frame = served(sequence);
        --frame[kFrameHeadBytes - 8];
        write_all(frame);
        hang();
    } else if (name == "shorter than it says") {
        std::string frame = served(sequence);
        ++frame[kFrameHeadBytes - 8];
        write_all(frame);
        hang();
    } else if (name == "fields beyond the body") {
        std::string frame = served(sequence);
        frame[kFrameHeadBytes + 8] = '\x7f';  // the length of the message
        write_all(frame);
        hang();
    } else if (name == "unknown kind") {
        std::string frame = served(sequence);
        frame[16] = '\x7f';
        write_all(frame);
    } else if (name == "closed but alive") {
        ::close(STDOUT_FILENO);
        ::close(STDIN_FILENO);
        ::close(STDERR_FILENO);
        hang();
    } else if (name == "other request") {
        write_all(served(sequence + 1));
    } else if (name == "other kind") {
        Reply reply;
        reply.kind = ReplyKind::disassembled;
        write_all(encode_reply(sequence, reply));
    } else if (name == "two replies") {
        write_all(served(sequence) + served(sequence));
    } else if (name == "no code object") {
        Reply reply;
        reply.kind = ReplyKind::compiled;
        reply.code_object = "not an ELF file";
        write_all(encode_reply(sequence, reply));
    } else if (name == "refused") {
        Reply reply;
        reply.error = {kiln::ErrorCode::compile_failed, kiln::Stage::compile, "the template's own fault"};
        write_all(encode_reply(sequence, reply));
    } else if (name == "late word") {
        write_all(served(sequence));
        for (int unread = 1; unread > 0 && ::ioctl(STDOUT_FILENO, SIOCOUTQ, &unread) == 0;) {
            wait_a_little();
        }
        wait_a_little();
        write_all("and another thing");
        std::ofstream("said");
    } else if (name == "words, then a moment") {
        std::fprintf(stderr, "%s\n", std::string(1000, 'x').c_str());
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        write_all(served(sequence));
    } else if (name == "until told") {  // by a file "go" in its folder
        std::ofstream("asked");
        while (::access("go", F_OK) != 0) {
            wait_a_little();
        }
        ::unlink("asked");
        ::unlink("go");
        write_all(served(sequence));
    } else {
        write_all(served(sequence));
    }
}

// False when there is nothing more to do.
bool start(const std::string& how) {
    Reply ready;
    ready.kind = ReplyKind::ready;
    ready.version = own_version();
    if (how == "silent") {
        hang();
    } else if (how == "garbage") {
        write_all(std::string(1000, '\xa5'));
        hang();
    } else if (how == "exit") {
        std::fprintf(stderr, "will not start\n");
        return false;
    } else if (how == "other version") {
        ready.version = "99.1.2";
    }
    write_all(encode_reply(0, ready));
    return true;
}

}  // namespace

int main(int, char** argv) {
    // Under a foreign loader the program is not /proc/self/exe; argv has its path in both cases.
    std::string how;
    std::getline(std::ifstream(std::string(argv[0]) + ".start") >> std::ws, how);
    if (!start(how)) {
        return 3;
    }
    std::string head(kFrameHeadBytes, '\0');
    while (read_exactly(head)) {
        const auto decoded = decode_head(head);
        if (!decoded) {
            return 8;
        }
        // "vanish" ends without reading what it was sent: its name is the first field of the body.
        std::string start(8 + 6, '\0');
        if (decoded->body_bytes < start.size() || !read_exactly(start)) {
            return 8;
        }
        if (start.substr(8) == "vanish") {
            return 0;
        }
        std::string rest(decoded->body_bytes - start.size(), '\0');
        if (!read_exactly(rest)) {
            return 8;
        }
        const auto request = decode_compile(start + rest);
        answer(request ? request->name : "", decoded->sequence);
    }
    return 0;
}
