// Command loop copies the label "colour" of every ConfigMap into its data: the controller of the KEP,
// for { runOnce() }, without a watch and with nothing but the standard library.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"

	"kubescene.dev/clients/go/scenario"
)

const configMaps = "/api/v1/namespaces/default/configmaps"

type configMap struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Data map[string]string `json:"data"`
}

type controller struct {
	server    string
	simulator *scenario.Config
}

func main() {
	server := os.Args[1]
	c := &controller{server: server, simulator: &scenario.Config{Host: server}}
	if len(os.Args) > 2 && os.Args[2] == "watch" {
		c.watch()
	}
	for {
		if err := c.runOnce(); err != nil {
			log.Print(err)
		}
	}
}

// runOnce is one loop: it paints the first ConfigMap that is not painted yet.
func (c *controller) runOnce() error {
	defer scenario.CheckScenarioStepPhase("loop", c.simulator)
	found := struct{ Items []configMap }{}
	if err := c.ask("GET", configMaps, "", &found); err != nil {
		return err
	}
	for _, each := range found.Items {
		colour := each.Metadata.Labels["colour"]
		if colour != "" && each.Data["colour"] != colour {
			patch := fmt.Sprintf(`{"data": {"colour": %q}}`, colour)
			return c.ask("PATCH", configMaps+"/"+each.Metadata.Name, patch, nil)
		}
	}
	return nil
}

// ask sends one request to the API server, and reads the answer into it if there is one.
func (c *controller) ask(method, path, body string, answer any) error {
	request, err := http.NewRequest(method, c.server+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// watch keeps a watch open, as informers do; what it hears of is not needed.
func (c *controller) watch() {
	response, err := http.Get(c.server + configMaps + "?watch=true")
	if err != nil {
		log.Fatal(err)
	}
	go io.Copy(io.Discard, response.Body)
}
