/* A compile worker that never answers, and ends when its host does. */
#include <unistd.h>

int main(void) {
    char request[4096];
    while (read(0, request, sizeof request) > 0) {
    }
    return 0;
}
