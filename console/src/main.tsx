import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { whenSignedOut } from "./api/call";
import { asProblem } from "./api/problem";
import { makeRouter } from "./router";
import "./styles.css";

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      refetchOnWindowFocus: true,
      // What the API refuses stays refused; what did not answer is asked twice more.
      retry: (failures, error) => {
        const { status } = asProblem(error);
        return failures < 2 && (status === 0 || status >= 500);
      },
    },
  },
});
const router = makeRouter(queries);

whenSignedOut(() => {
  if (router.state.location.pathname === "/sign-in") return;
  queries.removeQueries({ queryKey: ["session"] });
  void router.navigate({ to: "/sign-in", search: { to: router.state.location.href } });
});

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
