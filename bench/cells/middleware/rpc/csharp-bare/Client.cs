using System;
using System.Diagnostics;
using System.Net.Http;
using System.Text;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

/// `client.exe HOST PORT WARM CALLS`: calls per second of a loop of JSON-RPC 2.0 on HttpClient,
/// without a kit. What is thrown ends the process with 1.
static class Client {
    static readonly string[] words = { "Hello World" };
    static readonly HttpClient http = // without a proxy, as the cell
        new HttpClient(new HttpClientHandler { UseProxy = false });

    static void Main(string[] args) {
        http.Timeout = TimeSpan.FromSeconds(5);
        var address = new Uri($"http://{args[0]}:{args[1]}/rpc");
        int warm = int.Parse(args[2]), calls = int.Parse(args[3]);
        Call(address, 0);
        Console.WriteLine("begun");
        for (int id = 1; id <= warm; id++)
            Call(address, id);
        var watch = Stopwatch.StartNew();
        Console.WriteLine("warm");
        for (int id = 1; id <= calls; id++)
            Call(address, id);
        Console.WriteLine(calls / watch.Elapsed.TotalSeconds);
    }

    static void Call(Uri address, int id) {
        string request = JsonConvert.SerializeObject(
            new { jsonrpc = "2.0", id, method = "echo", @params = words });
        var content = new StringContent(request, Encoding.UTF8, "application/json");
        using (var response = http.PostAsync(address, content).GetAwaiter().GetResult()) {
            string text = response.Content.ReadAsStringAsync().GetAwaiter().GetResult();
            JObject found = JObject.Parse(text);
            if ((int)found["id"] != id || (string)found["result"] != words[0])
                throw new InvalidOperationException($"{text}, not {words[0]}");
        }
    }
}
