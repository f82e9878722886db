/*
 * A plain main for a fuzz target: runs it once on each file of the folders
 * named, and on cut forms of each, in builds without libFuzzer.
 */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input in memory of exactly its size, so that a sanitizer sees an
 * overrun. */
static void
run(const char *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);

    if (!copy)
        exit(1);
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static int
replay(const char *path)
{
    static char data[1 << 20];
    FILE *f = fopen(path, "rb");
    size_t n;

    if (!f) {
        perror(path);
        return 1;
    }
    n = fread(data, 1, sizeof data, f);
    fclose(f);
    run(data, n);
    for (size_t i = 0; i < n; i += 1 + n / 64) /* cut, and with a bit changed */
    {
        run(data, i);
        data[i] ^= 1 << i % 8;
        run(data, n);
        data[i] ^= 1 << i % 8;
    }
    return 0;
}

int
main(int argc, char **argv)
{
    int files = 0, status = 0;

    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        struct dirent *e;
        char path[4096];

        if (!dir) {
            perror(argv[i]);
            return 1;
        }
        while ((e = readdir(dir))) {
            if (e->d_name[0] == '.')
                continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
            status |= replay(path);
            files++;
        }
        closedir(dir);
    }
    printf("%d files replayed\n", files);
    return files ? status : 1;
}
