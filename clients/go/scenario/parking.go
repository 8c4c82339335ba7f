package scenario

import (
	"context"
	"errors"
	"log"
)

// Step is the simulated time of a Scenario.
type Step struct {
	Major int `json:"major"`
	Minor int `json:"minor"`
}

// Turn is what a controller is told when it may go on. Scenario is empty if none runs.
type Turn struct {
	Scenario string `json:"scenario"`
	Phase    string `json:"phase"`
	Step     Step   `json:"step"`
	Message  string `json:"message"`
}

// Place is where a controller stands when it parks: at the end of its loop, or, with a pod as
// namespace/name, at the top of the cycle in which it will schedule that pod.
type Place struct {
	Name string `json:"name"`
	Pod  string `json:"pod,omitempty"`
}

// OnError is called with every error that CheckScenarioStepPhase and GateNextPod return, because a
// deferred call loses its result. Set it before the controllers start; the default writes to the
// standard logger.
var OnError = func(err error) { log.Print(err) }

// CheckScenarioStepPhase reports that the controller of this name has ended a loop and is parked, and
// blocks until its next turn, or until no Scenario runs. After an error the controller goes on, and the
// API server holds its requests back until its turn comes.
func CheckScenarioStepPhase(name string, config *Config) error {
	return CheckScenarioStepPhaseContext(context.Background(), name, config)
}

// CheckScenarioStepPhaseContext is CheckScenarioStepPhase that gives up when the context ends, so that a
// parked controller can be stopped. That is no error for OnError.
func CheckScenarioStepPhaseContext(ctx context.Context, name string, config *Config) error {
	return wait(ctx, Place{Name: name}, config)
}

// GateNextPod is the same for a scheduler, at the top of its cycle: it reports that the pod, as
// namespace/name, is the next one, and blocks until the scheduler may schedule it.
func GateNextPod(name, pod string, config *Config) error {
	return wait(context.Background(), Place{Name: name, Pod: pod}, config)
}

// Park reports that a controller stands at a place, blocks until its next turn, and says which it is.
// The calls above are this one without the answer.
func Park(ctx context.Context, place Place, config *Config) (Turn, error) {
	if config == nil {
		return Turn{}, nil
	}
	report, err := newReport(place, config)
	if err != nil {
		return Turn{}, err
	}
	return report.untilTurn(ctx)
}

func wait(ctx context.Context, place Place, config *Config) error {
	_, err := Park(ctx, place, config)
	if err != nil && !errors.Is(err, ctx.Err()) {
		OnError(err)
	}
	return err
}
