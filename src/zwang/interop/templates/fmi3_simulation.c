/* ----------------------------------------------------------------------------------- copies of the state */

EXPORTED fmi3Status FMI(fmi3GetFMUState)(fmi3Instance instance, fmi3FMUState *state)
{
    if (!*state) *state = malloc(sizeof(Values));
    if (!*state) return failed(instance, fmi3Error, "there is no memory for a copy of the state");
    memcpy(*state, &((Instance *)instance)->values, sizeof(Values));
    return fmi3OK;
}

EXPORTED fmi3Status FMI(fmi3SetFMUState)(fmi3Instance instance, fmi3FMUState state)
{
    memcpy(&((Instance *)instance)->values, state, sizeof(Values));
    return fmi3OK;
}

EXPORTED fmi3Status FMI(fmi3FreeFMUState)(fmi3Instance instance, fmi3FMUState *state)
{
    (void)instance;
    free(*state);
    *state = NULL;
    return fmi3OK;
}

EXPORTED fmi3Status FMI(fmi3SerializedFMUStateSize)(fmi3Instance instance, fmi3FMUState state, size_t *size)
{
    (void)instance, (void)state;
    *size = sizeof(Values);
    return fmi3OK;
}

EXPORTED fmi3Status
FMI(fmi3SerializeFMUState)(fmi3Instance instance, fmi3FMUState state, fmi3Byte bytes[], size_t size)
{
    if (size < sizeof(Values)) return failed(instance, fmi3Error, "the array for the state is too short");
    memcpy(bytes, state, sizeof(Values));
    return fmi3OK;
}

EXPORTED fmi3Status FMI(fmi3DeserializeFMUState)(
    fmi3Instance instance, const fmi3Byte bytes[], size_t size, fmi3FMUState *state)
{
    if (size != sizeof(Values)) return failed(instance, fmi3Error, "these bytes are no state of this FMU");
    if (!*state) *state = malloc(sizeof(Values));
    if (!*state) return failed(instance, fmi3Error, "there is no memory for a copy of the state");
    memcpy(*state, bytes, sizeof(Values));
    return fmi3OK;
}

/* ------------------------------------------------------------------------------------------ derivatives */

#if HAS_JACOBIAN
#define ROWS (NX + NY)
#define COLUMNS (NX + NU + NP)

/* The row of an unknown in the Jacobian; ROWS + k for the state k, which is an output too; -1 for others. */
static int row_of(fmi3ValueReference reference)
{
    if (reference >= FIRST_STATE && reference < FIRST_DERIVATIVE)
        return (int)(ROWS + reference - FIRST_STATE);
    if (reference >= FIRST_DERIVATIVE && reference < FIRST_CONTROL)
        return (int)(reference - FIRST_DERIVATIVE);
    if (reference >= FIRST_OUTPUT && reference < END_OF_VALUES) return (int)(NX + reference - FIRST_OUTPUT);
    return -1;
}

static int column_of(fmi3ValueReference reference)
{
    if (reference >= FIRST_STATE && reference < FIRST_DERIVATIVE) return (int)(reference - FIRST_STATE);
    if (reference >= FIRST_CONTROL && reference < FIRST_OUTPUT) return (int)(NX + reference - FIRST_CONTROL);
    return -1;
}

static double entry(const double *J, int row, int column)
{
    return row < (int)ROWS ? J[row * (int)COLUMNS + column] : row - (int)ROWS == column;
}
#endif

/* sensitivity = J seed, or J^T seed of the adjoint derivative. */
static fmi3Status derivative(
    Instance *instance, const fmi3ValueReference unknowns[], size_t rows, const fmi3ValueReference knowns[],
    size_t columns, const double seed[], size_t seeds, double sensitivity[], size_t size, int adjoint)
{
#if HAS_JACOBIAN
    Values *x = &instance->values;
    double *work = instance->work, *J = instance->jacobian;

    (void)work;
    if (seeds != (adjoint ? rows : columns) || size != (adjoint ? columns : rows))
        return failed(instance, fmi3Error, "seed and sensitivity need one element for each variable");
    $jacobian_call
    for (size_t k = 0; k < size; ++k) sensitivity[k] = 0;
    for (size_t i = 0; i < rows; ++i) {
        for (size_t j = 0; j < columns; ++j) {
            const int row = row_of(unknowns[i]), column = column_of(knowns[j]);
            if (row < 0 || column < 0)
                return failed(instance, fmi3Error, "there is no derivative of these variables");
            if (adjoint) sensitivity[j] += entry(J, row, column) * seed[i];
            else sensitivity[i] += entry(J, row, column) * seed[j];
        }
    }
    return fmi3OK;
#else
    (void)unknowns, (void)rows, (void)knowns, (void)columns, (void)seed, (void)seeds, (void)sensitivity;
    (void)size, (void)adjoint;
    return failed(instance, fmi3Error, "this FMU provides no directional derivatives");
#endif
}

EXPORTED fmi3Status FMI(fmi3GetDirectionalDerivative)(
    fmi3Instance instance, const fmi3ValueReference unknowns[], size_t rows,
    const fmi3ValueReference knowns[], size_t columns, const fmi3Float64 seed[], size_t seeds,
    fmi3Float64 sensitivity[], size_t size)
{
    return derivative(instance, unknowns, rows, knowns, columns, seed, seeds, sensitivity, size, 0);
}

EXPORTED fmi3Status FMI(fmi3GetAdjointDerivative)(
    fmi3Instance instance, const fmi3ValueReference unknowns[], size_t rows,
    const fmi3ValueReference knowns[], size_t columns, const fmi3Float64 seed[], size_t seeds,
    fmi3Float64 sensitivity[], size_t size)
{
    return derivative(instance, unknowns, rows, knowns, columns, seed, seeds, sensitivity, size, 1);
}

/* --------------------------------------------------------------------------------------- model exchange */

EXPORTED fmi3Status FMI(fmi3UpdateDiscreteStates)(
    fmi3Instance instance, fmi3Boolean *update, fmi3Boolean *terminate, fmi3Boolean *nominals,
    fmi3Boolean *values, fmi3Boolean *has_event, fmi3Float64 *event)
{
    (void)instance, (void)event;
    *update = *terminate = *nominals = *values = *has_event = false;
    return fmi3OK;
}

EXPORTED fmi3Status FMI(fmi3CompletedIntegratorStep)(
    fmi3Instance instance, fmi3Boolean no_rollback, fmi3Boolean *enter_event_mode, fmi3Boolean *terminate)
{
    (void)instance, (void)no_rollback;
    *enter_event_mode = *terminate = false;
    return fmi3OK;
}

EXPORTED fmi3Status FMI(fmi3SetTime)(fmi3Instance instance, fmi3Float64 time)
{
    Values *x = &((Instance *)instance)->values;

    x->time = time;
    changed(x);
    return fmi3OK;
}

EXPORTED fmi3Status
FMI(fmi3SetContinuousStates)(fmi3Instance instance, const fmi3Float64 states[], size_t size)
{
    Values *x = &((Instance *)instance)->values;

    if (size != NX) return failed(instance, fmi3Error, "the number of continuous states is another one");
    for (size_t k = 0; k < NX; ++k) *state_element(x, k) = states[k];
    changed(x);
    return fmi3OK;
}

EXPORTED fmi3Status FMI(fmi3GetContinuousStates)(fmi3Instance instance, fmi3Float64 states[], size_t size)
{
    if (size != NX) return failed(instance, fmi3Error, "the number of continuous states is another one");
    for (size_t k = 0; k < NX; ++k) states[k] = *state_element(&((Instance *)instance)->values, k);
    return fmi3OK;
}

EXPORTED fmi3Status
FMI(fmi3GetContinuousStateDerivatives)(fmi3Instance instance, fmi3Float64 derivatives[], size_t size)
{
    fmi3Status status;

    if (size != NX) return failed(instance, fmi3Error, "the number of continuous states is another one");
    status = find_derivatives(instance);
    if (status == fmi3OK)
        memcpy(derivatives, ((Instance *)instance)->values.derivatives, NX * sizeof(double));
    return status;
}

EXPORTED fmi3Status
FMI(fmi3GetNominalsOfContinuousStates)(fmi3Instance instance, fmi3Float64 nominals[], size_t size)
{
    (void)instance;
    for (size_t k = 0; k < size; ++k) nominals[k] = 1;
    return fmi3OK;
}

EXPORTED fmi3Status FMI(fmi3GetEventIndicators)(fmi3Instance instance, fmi3Float64 indicators[], size_t size)
{
    (void)indicators;
    return size ? failed(instance, fmi3Error, "there are no event indicators") : fmi3OK;
}

EXPORTED fmi3Status FMI(fmi3GetNumberOfEventIndicators)(fmi3Instance instance, size_t *count)
{
    (void)instance;
    *count = 0;
    return fmi3OK;
}

EXPORTED fmi3Status FMI(fmi3GetNumberOfContinuousStates)(fmi3Instance instance, size_t *count)
{
    (void)instance;
    *count = NX;
    return fmi3OK;
}

/* ---------------------------------------------------------------------------------------- co-simulation */

EXPORTED fmi3Status FMI(fmi3DoStep)(
    fmi3Instance instance, fmi3Float64 point, fmi3Float64 size, fmi3Boolean no_rollback, fmi3Boolean *event,
    fmi3Boolean *terminate, fmi3Boolean *early_return, fmi3Float64 *last_time)
{
    Values *x = &((Instance *)instance)->values;
    const double steps = floor(size / STEP_SIZE + 0.5);
    /* An importer may add up the steps, with a rounding error of each. */
    const double rounding = (double)x->state.steps * DBL_EPSILON * (fabs(x->start) + fabs(x->time));

    (void)no_rollback;
    *event = *terminate = *early_return = false;
    *last_time = x->time;
    if (!(fabs(point - x->time) <= 1e-6 * STEP_SIZE + rounding))
        return failed(instance, fmi3Error, "the communication point is not the end of the last step");
    if (!(steps >= 1) || fabs(steps * STEP_SIZE - size) > 1e-6 * STEP_SIZE)
        return failed(
            instance, fmi3Error, "the communication step must be a multiple of the step size of the model");
    changed(x);
    for (double k = 0; k < steps; ++k) {
        const int status = ${name}_step(&x->state, x->control$parameters);
        if (status != 0) return failed(instance, fmi3Error, ${name}_status_text(status));
        x->time = x->start + (double)x->state.steps * STEP_SIZE;
        *last_time = x->time;
    }
    return fmi3OK;
}
