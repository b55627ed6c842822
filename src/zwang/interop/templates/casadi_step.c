
/* The Jacobian J ($rows x $columns), row by row, of the state after a step by the state before it, the
 * control, the time, if parts depend on it, and the parameters: along each direction by the implicit function
 * theorem, at the status of the constraint rows at the solution. With q_dot = G(q) v a change of an element
 * of q is the displacement G(q)^+ dq. */
static void ${name}_matrix($inputs, double *J, double *w)
{
    enum { NQ = $nq, NV = $nv, NZ = $nz, ROWS = $rows, COLUMNS = $columns, DIRECTIONS = $directions,
           TIME = $time };
    static const int quaternions[$quaternion_count + 1] = {$quaternions};
    double *const q_next = w, *const v_next = q_next + NQ, *const z_next = v_next + NV;
    double *const acceleration = z_next + NZ, *const switching = acceleration + $accelerations;
    double *const G = switching + 1, *const G_next = G + NQ * NV, *const direction = G_next + NQ * NV;
    double *const dq = direction + DIRECTIONS, *const dv = dq + NV, *const dz = dv + NV;
    double *const work = dz + NZ;
    (void)work; (void)acceleration; (void)z_next; (void)dz;
    $solution;
    $rates;
    $rates_next;
    int valid = 1;
    for (int i = 0; i < NQ + NV; ++i) valid &= isfinite(q_next[i]) != 0;
    for (int k = 0; k < $quaternion_count; ++k) {
        const double *const x = q + quaternions[k];
        const double scale = 4 / sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + x[3] * x[3]);
        /* G^T G is 1/4 for a unit quaternion */
        for (int i = 0; i < 4 * NV; ++i) G[quaternions[k] * NV + i] *= scale;
    }
    for (int c = 0; c < COLUMNS; ++c) {
        for (int i = 0; i < DIRECTIONS; ++i) direction[i] = 0;
        if (c < NQ) for (int i = 0; i < NV; ++i) direction[i] = G[c * NV + i];
        else if (c != TIME) direction[NV + c - NQ - (c > TIME)] = 1;
        $tangent;
        for (int r = 0; r < NQ; ++r) {
            double sum = 0;
            for (int i = 0; i < NV; ++i) sum += G_next[r * NV + i] * dq[i];
            J[r * COLUMNS + c] = sum;
        }
        for (int r = 0; r < NV; ++r) J[(NQ + r) * COLUMNS + c] = dv[r];
        for (int r = 0; r < NZ; ++r) J[(NQ + NV + r) * COLUMNS + c] = dz[r];
        if (!valid) for (int r = 0; r < ROWS; ++r) J[r * COLUMNS + c] = NAN;
    }
}
