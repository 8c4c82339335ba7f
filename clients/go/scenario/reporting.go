package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	shortestPause = 50 * time.Millisecond
	longestPause  = 2 * time.Second
	largestAnswer = 1 << 20
)

// StatusError is a refusal of the API server: a name that it does not know, a request that it does not
// understand, or a failure that lasted.
type StatusError struct {
	Code    int
	Reason  string
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%d %s: %s", e.Code, e.Reason, e.Message)
}

// report is one controller at one place, as it is told to the server until the turn comes.
type report struct {
	place   Place
	address *url.URL
	body    []byte
	config  *Config
	now     func() time.Time
	sleep   func(context.Context, time.Duration) bool
}

type answer struct {
	Go *bool `json:"go"`
	Turn
}

func newReport(place Place, config *Config) (*report, error) {
	if place.Name == "" {
		return nil, errors.New("kubescene: a controller without a name cannot park: say the name that the scenario gives it")
	}
	address, err := config.parkURL()
	if err != nil {
		return nil, fmt.Errorf("kubescene: %s cannot park: %w", place.Name, err)
	}
	body, err := json.Marshal(place)
	return &report{place, address, body, config, time.Now, sleep}, err
}

// untilTurn asks until the server says go. A server that fails is asked again after a pause, for as long
// as the configuration is patient; each answer renews the patience. "Not yet" is asked again at once.
func (r *report) untilTurn(ctx context.Context) (Turn, error) {
	pause, answered := shortestPause, r.now()
	for {
		got, err := r.ask(ctx)
		switch {
		case err == nil && *got.Go:
			return got.Turn, nil
		case err == nil:
			pause, answered = shortestPause, r.now()
			continue
		case !mayPass(ctx, err) || r.now().Sub(answered)+pause > r.config.patience():
			return Turn{}, fmt.Errorf("kubescene: %s cannot park at %s: %w", r.place.Name, r.address.Redacted(), err)
		}
		if !r.sleep(ctx, pause) {
			return Turn{}, fmt.Errorf("kubescene: %s is no longer parked: %w", r.place.Name, ctx.Err())
		}
		pause = min(2*pause, longestPause)
	}
}

func (r *report) ask(ctx context.Context) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.address.String(), bytes.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := r.config.client().Do(request)
	if err != nil {
		return answer{}, &unreachable{err}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, largestAnswer))
	if err != nil {
		return answer{}, &unreachable{err}
	}
	return understand(response.StatusCode, text)
}

func understand(code int, text []byte) (answer, error) {
	if code != http.StatusOK {
		return answer{}, refusal(code, text)
	}
	var got answer
	if err := json.Unmarshal(text, &got); err != nil {
		return answer{}, fmt.Errorf("the answer is not the JSON of a turn: %w", err)
	}
	if got.Go == nil {
		return answer{}, errors.New(`the answer does not say "go": is this the API server of Kubescene?`)
	}
	return got, nil
}

// refusal reads a Status of Kubernetes, or whatever else was answered.
func refusal(code int, text []byte) *StatusError {
	var status struct{ Kind, Reason, Message string }
	if json.Unmarshal(text, &status) == nil && status.Kind == "Status" {
		return &StatusError{Code: code, Reason: status.Reason, Message: status.Message}
	}
	return &StatusError{Code: code, Reason: http.StatusText(code), Message: string(bytes.TrimSpace(text[:min(len(text), 200)]))}
}

// unreachable is a failure to get any answer at all.
type unreachable struct{ error }

func (u *unreachable) Unwrap() error { return u.error }

// mayPass says whether it is worth asking again.
func mayPass(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	var status *StatusError
	if errors.As(err, &status) {
		return status.Code >= http.StatusInternalServerError
	}
	var gone *unreachable
	return errors.As(err, &gone)
}

// sleep waits; false if the context ended first.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
