/* A compile worker as another version of kiln may bring one: it introduces itself, and answers, in another
 * grammar. */
#include <unistd.h>

static int say(void) {
    const char frame[64] = "kilnw0\0\0 not as this version has it";
    return write(1, frame, sizeof frame) == sizeof frame;
}

int main(void) {
    char request[4096];
    while (say() && read(0, request, sizeof request) > 0) {
    }
    return 0;
}
