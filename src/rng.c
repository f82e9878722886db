#include <pipeformer/rng.h>

void
pf_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2];
    uint32_t c3 = counter[3], k0 = key[0], k1 = key[1];

    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xd2511f53 * c0;
        uint64_t p1 = (uint64_t)0xcd9e8d57 * c2;

        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9e3779b9;
        k1 += 0xbb67ae85;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

double
pf_uniform(uint64_t seed, uint64_t seq, uint64_t pos, unsigned i)
{
    const uint32_t counter[4] = { (uint32_t)pos, (uint32_t)(pos >> 32),
        (uint32_t)seq, (uint32_t)(seq >> 32) };
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    uint32_t w[4];

    pf_philox(w, counter, key);
    return (double)((uint64_t)w[2 * i] << 21 | w[2 * i + 1] >> 11) * 0x1p-53;
}
