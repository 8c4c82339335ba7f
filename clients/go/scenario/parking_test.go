package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	notYet = `{"go": false, "scenario": "first", "phase": "ControllerPaused", "step": {"major": 1, "minor": 2}, "message": ""}`
	yours  = `{"go": true, "scenario": "first", "phase": "ControllerRunning", "step": {"major": 1, "minor": 3}, "message": ""}`
	none   = `{"go": true, "scenario": "", "phase": "", "step": {"major": 0, "minor": 0}, "message": ""}`
)

// desk is an API server that gives its answers in order, the last one for ever, and keeps what it was told.
type desk struct {
	*httptest.Server
	mutex   sync.Mutex
	answers []reply
	told    []told
}

type reply struct {
	code int
	body string
}

type told struct{ method, path, query, contentType, body string }

func newDesk(t *testing.T, answers ...reply) *desk {
	d := &desk{answers: answers}
	d.Server = httptest.NewServer(http.HandlerFunc(d.serve))
	t.Cleanup(d.Close)
	return d
}

func (d *desk) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.told = append(d.told, told{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Content-Type"), string(body)})
	next := d.answers[0]
	if len(d.answers) > 1 {
		d.answers = d.answers[1:]
	}
	w.WriteHeader(next.code)
	fmt.Fprint(w, next.body)
}

func ok(body string) reply { return reply{http.StatusOK, body} }

// collected keeps what OnError is given during a test.
func collected(t *testing.T) *[]error {
	var errs []error
	before := OnError
	OnError = func(err error) { errs = append(errs, err) }
	t.Cleanup(func() { OnError = before })
	return &errs
}

func TestALoopEndsWhenTheServerSaysGo(t *testing.T) {
	d := newDesk(t, ok(notYet), ok(notYet), ok(yours))
	if err := CheckScenarioStepPhase("my-operator", &Config{Host: d.URL}); err != nil {
		t.Fatal(err)
	}
	want := told{"POST", "/simulator/v1/park", "timeoutSeconds=50", "application/json", `{"name":"my-operator"}`}
	if len(d.told) != 3 || d.told[0] != want || d.told[2] != want {
		t.Fatalf("told %+v", d.told)
	}
}

func TestAParkedControllerIsToldItsTurn(t *testing.T) {
	d := newDesk(t, ok(yours))
	turn, err := Park(context.Background(), Place{Name: "my-operator"}, &Config{Host: d.URL})
	want := Turn{Scenario: "first", Phase: "ControllerRunning", Step: Step{Major: 1, Minor: 3}}
	if err != nil || turn != want {
		t.Fatalf("%+v, %v", turn, err)
	}
}

func TestWithoutAScenarioNobodyWaits(t *testing.T) {
	d := newDesk(t, ok(none))
	turn, err := Park(context.Background(), Place{Name: "my-operator"}, &Config{Host: d.URL})
	if err != nil || turn.Scenario != "" || len(d.told) != 1 {
		t.Fatalf("%+v, %v, told %+v", turn, err, d.told)
	}
}

func TestASchedulerNamesItsPod(t *testing.T) {
	d := newDesk(t, ok(yours))
	if err := GateNextPod("my-scheduler", "default/web-1", &Config{Host: d.URL}); err != nil {
		t.Fatal(err)
	}
	var place Place
	if err := json.Unmarshal([]byte(d.told[0].body), &place); err != nil {
		t.Fatal(err)
	}
	if place != (Place{Name: "my-scheduler", Pod: "default/web-1"}) {
		t.Fatalf("told %+v", place)
	}
}

func TestThePathOfTheHostIsKept(t *testing.T) {
	for _, prefix := range []string{"/as/my-operator", "/as/my-operator/"} {
		d := newDesk(t, ok(yours))
		if err := CheckScenarioStepPhase("my-operator", &Config{Host: d.URL + prefix}); err != nil {
			t.Fatal(err)
		}
		if d.told[0].path != "/as/my-operator/simulator/v1/park" {
			t.Fatalf("told at %s", d.told[0].path)
		}
	}
}

func TestAClientWithATimeoutAsksForHalfOfIt(t *testing.T) {
	for timeout, query := range map[time.Duration]string{
		30 * time.Second:       "timeoutSeconds=15",
		500 * time.Second:      "timeoutSeconds=50",
		200 * time.Millisecond: "timeoutSeconds=1",
	} {
		config := &Config{Host: "http://127.0.0.1:8001", Client: &http.Client{Timeout: timeout}}
		address, err := config.parkURL()
		if err != nil || address.RawQuery != query {
			t.Errorf("%s: %v, %v", timeout, address, err)
		}
	}
}

func TestARefusalIsReturnedAndReported(t *testing.T) {
	errs := collected(t)
	d := newDesk(t, reply{404, `{"kind": "Status", "reason": "NotFound", "message": "no outside controller is called x"}`})
	err := CheckScenarioStepPhase("x", &Config{Host: d.URL})
	var status *StatusError
	if !errors.As(err, &status) || status.Code != 404 || status.Reason != "NotFound" {
		t.Fatalf("%v", err)
	}
	if !strings.HasSuffix(err.Error(), "404 NotFound: no outside controller is called x") {
		t.Fatalf("%v", err)
	}
	if len(d.told) != 1 || len(*errs) != 1 || (*errs)[0] != err {
		t.Fatalf("told %d times, reported %v", len(d.told), *errs)
	}
}

func TestARefusalThatIsNoStatusIsQuoted(t *testing.T) {
	collected(t)
	d := newDesk(t, reply{403, "forbidden by a proxy\n"})
	err := CheckScenarioStepPhase("x", &Config{Host: d.URL})
	if err == nil || !strings.HasSuffix(err.Error(), "403 Forbidden: forbidden by a proxy") {
		t.Fatalf("%v", err)
	}
}

func TestAServerThatFailsIsAskedAgain(t *testing.T) {
	d := newDesk(t, reply{503, "starting"}, reply{500, "starting"}, ok(yours))
	if err := CheckScenarioStepPhase("my-operator", &Config{Host: d.URL}); err != nil {
		t.Fatal(err)
	}
	if len(d.told) != 3 {
		t.Fatalf("told %d times", len(d.told))
	}
}

// unhurried asks on a clock that only pauses move; it says how long they were.
func unhurried(t *testing.T, config *Config) (pauses []time.Duration, err error) {
	r, err := newReport(Place{Name: "my-operator"}, config)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(0, 0)
	r.now = func() time.Time { return now }
	r.sleep = func(_ context.Context, pause time.Duration) bool {
		now, pauses = now.Add(pause), append(pauses, pause)
		return true
	}
	_, err = r.untilTurn(context.Background())
	return pauses, err
}

func TestPatienceEnds(t *testing.T) {
	d := newDesk(t, reply{503, "starting"})
	pauses, err := unhurried(t, &Config{Host: d.URL, Patience: 5 * time.Second})
	var status *StatusError
	if !errors.As(err, &status) || status.Code != 503 {
		t.Fatalf("%v", err)
	}
	want := "[50ms 100ms 200ms 400ms 800ms 1.6s]" // 3.15 s; with the next pause of 2 s it would be more than 5 s
	if fmt.Sprint(pauses) != want || len(d.told) != 7 {
		t.Fatalf("paused %v, told %d times", pauses, len(d.told))
	}
}

func TestPatienceIsAMinuteUnlessSaid(t *testing.T) {
	d := newDesk(t, reply{503, "starting"})
	pauses, err := unhurried(t, &Config{Host: d.URL})
	var total time.Duration
	for _, pause := range pauses {
		total += pause
	}
	if err == nil || total != 59150*time.Millisecond {
		t.Fatalf("%v after %v: %v", err, total, pauses)
	}
}

func TestWithoutPatienceNothingIsTriedTwice(t *testing.T) {
	collected(t)
	d := newDesk(t, reply{503, "starting"})
	if err := CheckScenarioStepPhase("my-operator", &Config{Host: d.URL, Patience: -1}); err == nil || len(d.told) != 1 {
		t.Fatalf("%v after %d", err, len(d.told))
	}
}

func TestAServerThatIsGoneIsAnErrorInTheEnd(t *testing.T) {
	errs := collected(t)
	d := newDesk(t, ok(yours))
	d.Close()
	err := CheckScenarioStepPhase("my-operator", &Config{Host: d.URL, Patience: 60 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "my-operator cannot park at "+d.URL) || len(*errs) != 1 {
		t.Fatalf("%v, reported %v", err, *errs)
	}
}

func TestEachAnswerRenewsThePatience(t *testing.T) {
	d := newDesk(t, reply{503, ""}, ok(notYet), reply{503, ""}, ok(notYet), reply{503, ""}, ok(yours))
	pauses, err := unhurried(t, &Config{Host: d.URL, Patience: 70 * time.Millisecond})
	if err != nil || fmt.Sprint(pauses) != "[50ms 50ms 50ms]" {
		t.Fatalf("%v after %v", err, pauses)
	}
}

func TestAnAnswerOfSomethingElseIsAnError(t *testing.T) {
	collected(t)
	for body, want := range map[string]string{
		"<html>":             "not the JSON of a turn",
		`{"kind": "Status"}`: `does not say "go"`,
	} {
		d := newDesk(t, ok(body))
		err := CheckScenarioStepPhase("my-operator", &Config{Host: d.URL})
		if err == nil || !strings.Contains(err.Error(), want) || len(d.told) != 1 {
			t.Errorf("%s: %v after %d", body, err, len(d.told))
		}
	}
}

func TestWithoutASimulatorNothingHappens(t *testing.T) {
	if err := CheckScenarioStepPhase("my-operator", nil); err != nil {
		t.Fatal(err)
	}
}

func TestABadCallIsRefusedBeforeAnythingIsSent(t *testing.T) {
	collected(t)
	for want, call := range map[string]func() error{
		"without a name":     func() error { return CheckScenarioStepPhase("", &Config{Host: "http://127.0.0.1:1"}) },
		"with a scheme":      func() error { return CheckScenarioStepPhase("x", &Config{Host: "127.0.0.1:8001"}) },
		`host "localhost:1"`: func() error { return CheckScenarioStepPhase("x", &Config{Host: "localhost:1"}) },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestAParkedControllerCanBeStopped(t *testing.T) {
	errs := collected(t)
	asked, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-release
	}))
	defer server.Close()
	defer close(release)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-asked; cancel() }()
	err := CheckScenarioStepPhaseContext(ctx, "my-operator", &Config{Host: server.URL})
	if !errors.Is(err, context.Canceled) || len(*errs) != 0 {
		t.Fatalf("%v, reported %v", err, *errs)
	}
}

func TestAStoppedControllerDoesNotWaitOutItsPause(t *testing.T) {
	d := newDesk(t, reply{503, "starting"})
	ctx, cancel := context.WithTimeout(context.Background(), 70*time.Millisecond)
	defer cancel()
	_, err := Park(ctx, Place{Name: "my-operator"}, &Config{Host: d.URL})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v", err)
	}
}
