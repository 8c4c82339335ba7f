package scenario

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	parkPath       = "simulator/v1/park"
	longestAsk     = 50 * time.Second
	defaultPatient = time.Minute
)

// Config says how the simulator's API server is reached. Two fields of a client-go program fill it:
//
//	client, err := rest.HTTPClientFor(restConfig)
//	config := &scenario.Config{Host: restConfig.Host, Client: client}
//
// A nil *Config means that there is no simulator: every call returns at once, without an error, so that
// the same binary may run in a real cluster.
type Config struct {
	// Host is the address of the API server, with its scheme: http://127.0.0.1:8001. A path is kept
	// and put before that of the request: http://127.0.0.1:8001/as/my-operator.
	Host string

	// Client sends the requests; nil is http.DefaultClient. Where it has a Timeout, the server is
	// asked to answer in half of it.
	Client *http.Client

	// Patience is how long a server that cannot be reached, or answers 5xx, is tried again before an
	// error is returned; zero is one minute, less than zero not at all.
	Patience time.Duration
}

// parkURL is where this server takes reports of parked controllers.
func (c *Config) parkURL() (*url.URL, error) {
	address, err := url.Parse(c.Host)
	if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return nil, fmt.Errorf("the host %q is no address with a scheme, such as http://127.0.0.1:8001", c.Host)
	}
	address = address.JoinPath(strings.Split(parkPath, "/")...)
	address.RawQuery = fmt.Sprintf("timeoutSeconds=%d", int(c.ask().Seconds()))
	return address, nil
}

// ask is for how long the server may keep a request before it says "not yet".
func (c *Config) ask() time.Duration {
	timeout := c.client().Timeout
	if timeout <= 0 {
		return longestAsk
	}
	return max(time.Second, min(timeout/2, longestAsk)).Truncate(time.Second)
}

func (c *Config) client() *http.Client {
	if c.Client == nil {
		return http.DefaultClient
	}
	return c.Client
}

func (c *Config) patience() time.Duration {
	if c.Patience == 0 {
		return defaultPatient
	}
	return max(0, c.Patience)
}
