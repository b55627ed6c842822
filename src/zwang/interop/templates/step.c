static const $real initial_q[$nq] = {
    $q,
};
static const $real initial_v[$nv] = {
    $v,
};
$initial_z
const $real ${name}_initial_control[${upper}_NU] = {
    $control,
};

void ${name}_initial_state(${name}_state *state)
{
    memset(state, 0, sizeof *state);
    state->solver_status = -1;
    memcpy(state->q, initial_q, sizeof initial_q);
    memcpy(state->v, initial_v, sizeof initial_v);
$copy_z}

int ${name}_step(${name}_state *state, const $real *control$parameters)
{
    $real clock = ($real)state->steps, status = ($real)state->status$monitor;

    ${name}_step_program($arguments);
    if (status == 0) state->steps += 1;
    state->status = (int)status;
$solver    return state->status;
}

$real ${name}_time(const ${name}_state *state)
{
    return ($real)state->steps * ($real)${upper}_STEP_SIZE;
}

const char *${name}_status_text(int status)
{
    static const char *const texts[] = {
        $texts,
    };
    if (status < 0 || status >= (int)(sizeof texts / sizeof texts[0])) return "unknown status";
    return texts[status];
}
